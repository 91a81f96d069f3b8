"""A window of recorded scrapes gives readings where it was measured, and says what it could not measure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from bot.messages import strict
from policies.metrics.collected import Asked
from policies.metrics.measured import Measured, Reading
from policies.metrics.samples import Sample, Scrape
from policies.metrics.window import MOST_READINGS, measure, reach_s

RUNNING = "sum(max by (instance, dp_rank) (sglang:num_running_reqs))"
DECODE = ("decode@gpu1",)
BOTH = ("decode@gpu1", "decode@gpu2")


def scrape(at: float, value: float | None, instance: str = "decode@gpu1", **labels: str) -> Scrape:
    samples = () if value is None else (Sample("sglang:num_running_reqs", labels, value),)
    return Scrape(instance, "http://127.0.0.1:30001/metrics", at, samples)


def window(
    scrapes: Sequence[Scrape],
    text: str = RUNNING,
    instances: Sequence[str] = DECODE,
    start: float = 100.0,
    end: float = 200.0,
) -> Measured:
    return measure(Asked("running_reqs", text, "requests"), scrapes, instances=instances, start=start, end=end)


def numbers(found: Measured) -> list[tuple[float, float]]:
    return [(reading.at, reading.value) for reading in found.readings]


def problem(found: Measured) -> str | None:
    if found.problem is None:
        return None
    assert strict(found.problem)
    return found.problem.code


def test_there_is_a_reading_for_each_scrape_and_its_source_is_named() -> None:
    found = window([scrape(at, at) for at in (90.0, 105.0, 120.0, 200.0, 215.0)])
    assert numbers(found) == [(105.0, 105.0), (120.0, 120.0), (200.0, 200.0)]
    assert (found.name, found.query, found.unit) == ("running_reqs", RUNNING, "requests")
    assert found.source == "scrape of http://127.0.0.1:30001/metrics on gpu1"
    assert problem(found) is None


def test_scrapes_of_other_instances_are_not_looked_at() -> None:
    found = window([scrape(110.0, 5.0), scrape(110.0, 7.0, "prefill@gpu1")])
    assert numbers(found) == [(110.0, 5.0)]


def test_replicas_that_are_scraped_together_are_one_moment() -> None:
    scrapes = [
        scrape(110.0, 5.0),
        scrape(110.4, 7.0, "decode@gpu2"),
        scrape(125.0, 6.0),
        scrape(125.5, 8.0, "decode@gpu2"),
    ]
    assert numbers(window(scrapes, instances=BOTH)) == [(110.4, 12.0), (125.5, 14.0)]


def test_half_of_the_replicas_are_no_sum() -> None:
    scrapes = [scrape(110.0, 5.0), scrape(150.0, 6.0), scrape(110.1, 7.0, "decode@gpu2")]
    found = window(scrapes, instances=BOTH)
    assert numbers(found) == [(110.1, 12.0)]
    assert found.problem is not None
    assert (problem(found), found.problem.values["missing"], found.problem.values["of"]) == ("metrics.gaps", 1, 2)
    assert found.problem.values["why"] == "metrics.not-scraped"
    alone = window([scrape(110.0, 5.0)], instances=BOTH)
    assert (alone.readings, problem(alone)) == ((), "metrics.not-scraped")


def test_a_series_that_one_replica_lacks_is_no_0() -> None:
    found = window([scrape(110.0, 5.0), scrape(110.0, None, "decode@gpu2")], instances=BOTH)
    assert (found.readings, problem(found)) == ((), "metrics.partial")
    assert found.problem is not None
    assert (found.problem.values["instance"], found.problem.values["series"]) == (
        "decode@gpu2",
        "sglang:num_running_reqs",
    )


def test_a_service_that_never_has_a_series_is_not_missed() -> None:
    scrapes = [scrape(110.0, 5.0), scrape(110.0, None, "router@gpu1")]
    assert numbers(window(scrapes, instances=("decode@gpu1", "router@gpu1"))) == [(110.0, 5.0)]


def test_a_missing_family_is_no_data() -> None:
    found = window([scrape(110.0, 5.0)], "sum(sglang:num_queue_reqs)")
    assert (found.readings, problem(found)) == ((), "metrics.missing")


def test_nothing_recorded_is_no_data() -> None:
    assert problem(window([])) == "metrics.missing"


def test_an_old_sample_is_no_answer_for_the_window() -> None:
    found = window([scrape(70.0, 5.0)])
    assert (found.readings, problem(found)) == ((), "metrics.stale")
    assert found.problem is not None
    assert (found.problem.values["last"], found.problem.values["age_s"]) == (70.0, 30.0)


def test_a_series_that_ends_in_the_window_gives_no_further_readings() -> None:
    found = window([scrape(110.0, 5.0), scrape(125.0, None)])
    assert numbers(found) == [(110.0, 5.0)]
    assert problem(found) == "metrics.gaps"


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_no_reading(value: float) -> None:
    found = window([scrape(110.0, value)])
    assert (found.readings, problem(found)) == ((), "metrics.no-number")


def test_one_rank_that_does_not_know_spoils_the_reading() -> None:
    samples = (Sample("a", {"dp_rank": "0"}, 3.0), Sample("a", {"dp_rank": "1"}, math.nan))
    found = window([Scrape("decode@gpu1", "u", 110.0, samples)], "a")
    assert (found.readings, problem(found)) == ((), "metrics.no-number")


def test_series_that_disagree_are_told_with_both_values() -> None:
    samples = (Sample("a", {"tp_rank": "0"}, 3.0), Sample("a", {"tp_rank": "1"}, 4.0))
    found = window([Scrape("decode@gpu1", "u", 110.0, samples)], "a")
    assert found.readings == (Reading(at=110.0, value=3.0, most=4.0),)
    assert problem(found) == "metrics.disagree"
    assert found.problem is not None
    assert (found.problem.values["least"], found.problem.values["most"]) == (3.0, 4.0)


def test_series_that_agree_are_one_reading() -> None:
    samples = (Sample("a", {"tp_rank": "0"}, 3.0), Sample("a", {"tp_rank": "1"}, 3.0))
    found = window([Scrape("decode@gpu1", "u", 110.0, samples)], "a")
    assert (found.readings, found.problem) == ((Reading(at=110.0, value=3.0),), None)


def test_a_quantile_past_the_last_bound_is_a_reading_that_says_so() -> None:
    buckets = tuple(Sample("b", {"le": le}, n) for le, n in (("1", 1.0), ("30", 2.0), ("+Inf", 100.0)))
    found = window([Scrape("decode@gpu1", "u", 110.0, buckets)], "histogram_quantile(0.9, b)")
    assert found.readings == (Reading(at=110.0, value=30.0, beyond=True),)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("sum(", "metrics.bad-query"),
        ("a offset 1h", "metrics.needs-prometheus"),
        ('-{__name__=~".+"}', "metrics.ambiguous"),
    ],
)
def test_a_query_without_an_answer_says_why(text: str, code: str) -> None:
    samples = (Sample("a", {}, 3.0), Sample("b", {}, 4.0))
    found = window([Scrape("decode@gpu1", "u", 110.0, samples)], text)
    assert (found.readings, problem(found)) == ((), code)


def test_a_rate_looks_back_before_its_window() -> None:
    scrapes = [Scrape("decode@gpu1", "u", at, (Sample("t", {}, at * 2),)) for at in (40.0, 55.0, 70.0, 85.0, 100.0)]
    assert numbers(window(scrapes, "rate(t[1m])", start=100.0)) == [(100.0, 2.0)]
    assert reach_s("sum(rate(t[10m])) + increase(u[1h])") == 3900.0


def test_a_throughput_is_the_last_one_that_was_logged() -> None:
    samples = (Sample("sglang:gen_throughput", {}, 86.5),)
    found = window([Scrape("decode@gpu1", "u", 110.0, samples)], "sum(sglang:gen_throughput)")
    assert numbers(found) == [(110.0, 86.5)]
    assert problem(found) == "metrics.last-value"


def test_of_a_long_window_evenly_spread_moments_are_answered() -> None:
    found = window([scrape(100.0 + i / 10, float(i)) for i in range(1000)])
    assert len(found.readings) == MOST_READINGS
    assert (found.readings[0].value, found.readings[-1].value) == (0.0, 999.0)
    steps = [b.value - a.value for a, b in zip(found.readings, found.readings[1:], strict=False)]
    assert {2.0, 3.0} >= set(steps)


def test_of_many_places_three_are_named() -> None:
    instances = tuple(f"decode@gpu{i}" for i in range(5))
    found = window([scrape(110.0, 1.0, instance) for instance in instances], instances=instances)
    assert found.source.endswith("on gpu2, 2 more")
    assert found.readings == (Reading(at=110.0, value=5.0),)
