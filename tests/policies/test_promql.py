"""What recorded scrapes answer, what they leave to Prometheus, and what nobody can answer.

That answers are those of Prometheus is proven beside a real one, in tests/real/test_promql_oracle.py.
"""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from policies.finding import Finding
from policies.metrics.evaluate import evaluate
from policies.metrics.history import History
from policies.metrics.promql import LONGEST_QUERY, Query, compile_query
from policies.metrics.regex import NotSupported, Pattern
from policies.metrics.samples import Sample, Scrape
from tests.policies.test_metrics_samples import read
from tests.shared import shared


def compiled(text: str) -> Query:
    query = compile_query(text)
    assert isinstance(query, Query), query
    return query


def scrape(at: float, *samples: Sample, instance: str = "decode@gpu1") -> Scrape:
    return Scrape(instance, "http://127.0.0.1:1/metrics", at, samples)


def answer(text: str, *scrapes: Scrape, at: float = 100.0) -> dict[tuple[tuple[str, str], ...], float]:
    found = evaluate(compiled(text), History(scrapes), at)
    assert not isinstance(found, Finding), found
    return {tuple(sorted(p.labels.items())): p.value.number for p in found}


def points(text: str, *scrapes: Scrape, at: float = 100.0) -> list[tuple[float, bool]]:
    found = evaluate(compiled(text), History(scrapes), at)
    assert not isinstance(found, Finding), found
    return [(p.value.number, p.value.beyond) for p in found]


def told(text: str, *scrapes: Scrape, at: float = 100.0) -> Finding:
    found = evaluate(compiled(text), History(scrapes), at)
    assert isinstance(found, Finding)
    return found


@pytest.mark.parametrize(
    ("text", "construct"),
    [
        ("a offset 5m", "offset"),
        ("rate(a[5m] offset 1h)", "offset"),
        ("a @ 1700000000", "@"),
        ("max_over_time(a[5m])", "max_over_time()"),
        ("rate(a[5m:1m])", "a subquery"),
        ("avg_over_time(rate(a[5m])[1h:])", "avg_over_time()"),
        ("topk(3, a)", "topk"),
        ("quantile(0.5, a)", "quantile"),
        ("a or b", "or"),
        ("a unless b", "unless"),
        ("a / on (x) group_left (y) b", "group_left and group_right"),
        ("a atan2 b", "atan2"),
        ("abs(a)", "abs()"),
        ("scalar(a)", "scalar()"),
        ('a{b=~"(?i)x"}', "`(?` in a pattern"),
        ('a{b="c" or d="e"}', "`or` between label matchers"),
        ("(" * 70 + "a" + ")" * 70, "so deep a nesting"),
    ],
)
def test_what_is_more_than_scrapes_answer_is_named(text: str, construct: str) -> None:
    found = compile_query(text)
    assert isinstance(found, Finding)
    assert (found.code, found.values["construct"]) == ("metrics.needs-prometheus", construct)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sum(",
        "a b",
        "total(a)",
        "rate(a)",
        "a[5m]",
        '"text"',
        'a{b=~"["}',
        "a" * (LONGEST_QUERY + 1),
        "(" * 500,
        "🙂",
    ],
)
def test_what_is_no_promql_is_said_so(text: str) -> None:
    found = compile_query(text)
    assert isinstance(found, Finding)
    assert found.code == "metrics.bad-query"
    assert found.values["problem"]


@given(st.text(alphabet='ab019 ()[]{}"=~!<>+-*/%^,.:msby', max_size=40))
def test_any_text_is_a_query_or_one_finding(text: str) -> None:
    found = compile_query(text)
    assert isinstance(found, Query) or found.code in {"metrics.bad-query", "metrics.needs-prometheus"}


def test_a_query_says_what_it_reads_and_how_far_back() -> None:
    query = compiled('sum(rate(a{x="1"}[90s])) / sum(increase(b[5m])) + time() - c')
    assert query.names == frozenset("abc")
    assert query.range_s == 300.0
    assert compiled('{__name__=~"a.*"} + b').names is None


def test_every_rank_repeats_the_requests_of_its_dp_rank() -> None:
    text = "sum(max by (instance, dp_rank) (sglang:num_running_reqs))"
    ranks = [("0", "0", 30.0), ("0", "1", 30.0), ("1", "0", 23.0), ("1", "1", 23.0)]
    one = scrape(90.0, *(Sample("sglang:num_running_reqs", {"dp_rank": d, "tp_rank": t}, v) for d, t, v in ranks))
    assert answer(text, one) == {(): 53.0}


def test_the_instance_is_the_service_on_its_host_and_what_the_text_calls_so_steps_aside() -> None:
    one = scrape(90.0, Sample("a", {"instance": "0.0.0.0:1", "empty": ""}, 1.0))
    assert answer("a", one) == {
        (("__name__", "a"), ("exported_instance", "0.0.0.0:1"), ("instance", "decode@gpu1")): 1.0
    }


def test_a_series_that_the_next_scrape_does_not_have_is_no_data_at_once() -> None:
    then, now = scrape(80.0, Sample("a", {}, 7.0), Sample("b", {}, 1.0)), scrape(90.0, Sample("b", {}, 1.0))
    assert list(answer("sum(a)", then, now, at=89.0).values()) == [7.0]
    assert answer("sum(a)", then, now, at=90.0) == {}
    assert list(answer("sum(a)", then, now, scrape(95.0, Sample("a", {}, 8.0))).values()) == [8.0]


def test_the_end_of_one_instance_does_not_end_the_series_of_another() -> None:
    gone = scrape(90.0, instance="decode@gpu1")
    there = scrape(80.0, Sample("a", {}, 7.0), instance="decode@gpu2")
    assert answer("sum(a)", scrape(80.0, Sample("a", {}, 5.0)), there, gone) == {(): 7.0}


def test_a_sample_is_no_answer_five_minutes_later() -> None:
    one = scrape(100.0, Sample("a", {}, 7.0))
    assert len(answer("a", one, at=400.0)) == 1
    assert answer("a", one, at=400.001) == {}


def test_a_sample_with_a_time_of_its_own_counts_from_that_time() -> None:
    one = scrape(100.0, Sample("a", {}, 7.0, at=50.0))
    assert answer("a", one, at=49.0) == {}
    assert len(answer("a", one, at=350.0)) == 1
    assert answer("a", one, at=351.0) == {}


def test_a_counter_that_fell_began_again() -> None:
    counts = [(40.0, 100.0), (50.0, 130.0), (60.0, 5.0), (70.0, 25.0)]
    scrapes = [scrape(at, Sample("t", {}, v)) for at, v in counts]
    (increase,) = answer("increase(t[30s])", *scrapes, at=70.0).values()
    assert increase == 130.0 - 100.0 + 25.0
    (delta,) = answer("delta(t[30s])", *scrapes, at=70.0).values()
    assert delta == -75.0


def test_one_sample_says_nothing_about_a_rate() -> None:
    assert answer("rate(t[1m])", scrape(90.0, Sample("t", {}, 5.0))) == {}


def test_a_quantile_past_the_last_bound_is_beyond_it() -> None:
    real = read(shared("metrics/sglang_docs_sample.prom").read_text())
    text = "histogram_quantile(0.5, sglang:time_to_first_token_seconds_bucket)"
    assert points(text, real, at=real.at) == [(30.0, True)]  # 8495 of 11008 first tokens took longer
    ((inside, beyond),) = points(text.replace("0.5", "0.1"), real, at=real.at)
    assert (round(inside, 3), beyond) == (8.527, False)


BEYOND = (Sample("b", {"le": "1"}, 1.0), Sample("b", {"le": "30"}, 2.0), Sample("b", {"le": "+Inf"}, 100.0))
Q = "histogram_quantile(0.9, b)"


@pytest.mark.parametrize(
    ("text", "number", "beyond"),
    [
        (Q, 30.0, True),
        (f"{Q} * 1000", 30000.0, True),
        (f"1000 * {Q}", 30000.0, True),
        (f"{Q} / 2", 15.0, True),
        (f"{Q} + {Q}", 60.0, True),
        (f"{Q} - 1", 29.0, True),
        (f"max({Q})", 30.0, True),
        (f"min({Q})", 30.0, True),
        (f"sum({Q})", 30.0, True),
        (f"avg({Q})", 30.0, True),
        (f"count({Q})", 1.0, False),
        (f"{Q} > 30", 30.0, True),
        (f"{Q} > bool 30", 1.0, False),
        (f"30 < bool {Q}", 1.0, False),
        (f"{Q} <= bool 30", 0.0, False),
        (f"{Q} == bool 12", 0.0, False),
        (f"{Q} != bool 12", 1.0, False),
    ],
)
def test_what_lies_beyond_a_bound_stays_beyond(text: str, number: float, beyond: bool) -> None:
    assert points(text, scrape(90.0, *BEYOND)) == [(number, beyond)]


@pytest.mark.parametrize(
    "text", [f"{Q} > 31", f"{Q} == 31", f"-{Q}", f"1 / {Q}", f"{Q} - {Q}", f"{Q} * -1", f"{Q} ^ 2"]
)
def test_what_hangs_on_how_far_beyond_has_no_answer(text: str) -> None:
    assert told(text, scrape(90.0, *BEYOND)).code == "metrics.past-bounds"


def test_the_least_of_several_is_told_only_where_it_is_known() -> None:
    fast = (Sample("b", {"le": "1"}, 10.0, None), Sample("b", {"le": "+Inf"}, 10.0, None))
    slow = scrape(90.0, *BEYOND)
    ((known, beyond),) = points(f"min({Q})", slow, scrape(90.0, *fast, instance="decode@gpu2"))
    assert (round(known, 6), beyond) == (0.9, False)
    slower = scrape(
        90.0,
        Sample("b", {"le": "50"}, 0.0),
        Sample("b", {"le": "60"}, 10.0),
        Sample("b", {"le": "+Inf"}, 10.0),
        instance="d@2",
    )
    assert told(f"min({Q})", slow, slower).code == "metrics.past-bounds"


def test_a_histogram_without_observations_has_no_quantile() -> None:
    empty = scrape(90.0, *(Sample("b", {"le": le}, 0.0) for le in ("1", "+Inf")))
    (value,) = answer(Q, empty).values()
    assert math.isnan(value)


@pytest.mark.parametrize(("text", "value"), [("max(a)", 3.0), ("min(a)", 2.0), ("count(a)", 3.0)])
@pytest.mark.parametrize("first", ["0", "9"])
def test_the_greatest_and_the_least_pass_over_what_is_no_number(text: str, value: float, first: str) -> None:
    values = (Sample("a", {"i": first}, math.nan), Sample("a", {"i": "4"}, 2.0), Sample("a", {"i": "5"}, 3.0))
    ordered = sorted(values, key=lambda sample: sample.labels["i"])
    assert points(text, scrape(90.0, *ordered)) == [(value, False)]
    (nothing,) = points("max(a)", scrape(90.0, values[0]))
    assert math.isnan(nothing[0])


def test_series_that_cannot_be_told_apart_are_no_answer() -> None:
    found = told('-{__name__=~"a|b"}', scrape(90.0, Sample("a", {}, 1.0), Sample("b", {}, 2.0)))
    assert found.code == "metrics.ambiguous"


@given(
    st.text(alphabet="ab.*+?|()[]^-{}12,\\$d", max_size=8),
    st.lists(st.text(alphabet="ab1.-\n", max_size=5), min_size=1, max_size=5),
)
def test_a_pattern_matches_what_pythons_own_engine_matches(pattern: str, found: list[str]) -> None:
    try:
        ours = Pattern(pattern)
    except NotSupported:
        return
    assume(not re.search(r"[*+?}]\?*[+]", pattern))
    theirs = re.compile(pattern, re.ASCII)
    for value in found:
        assert ours.matches(value) is (theirs.fullmatch(value) is not None)


def test_a_hostile_pattern_takes_no_time() -> None:
    assert not Pattern("(a+)+b").matches("a" * 5000)
    with pytest.raises(NotSupported):
        Pattern("(a{1000}){1000}")
