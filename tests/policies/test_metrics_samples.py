"""A metrics text is read as it stands: names as they are, a bad line named, no value no sample."""

from __future__ import annotations

import time
from math import inf, isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from policies.facts import HttpAnswer
from policies.finding import Finding
from policies.metrics.measured import Comparison, Measured, Reading, missing
from policies.metrics.samples import Sample, Scrape, answered_scrape, read_scrape
from tests.shared import shared

URL = "http://127.0.0.1:30001/metrics"


def read(text: str) -> Scrape:
    found = read_scrape(text, instance="decode@gpu1", url=URL, at=1000.0)
    assert isinstance(found, Scrape)
    return found


def problem(text: str) -> Finding:
    found = read_scrape(text, instance="decode@gpu1", url=URL, at=1000.0)
    assert isinstance(found, Finding)
    return found


def test_a_real_scrape_gives_its_samples_under_their_own_names() -> None:
    scrape = read(shared("metrics/sglang_docs_sample.prom").read_text())
    labels = {"model_name": "meta-llama/Llama-3.1-8B-Instruct"}
    assert scrape.named("sglang:num_running_reqs") == (Sample("sglang:num_running_reqs", labels, 162.0),)
    assert scrape.named("sglang:num_queue_reqs")[0].value == 2826.0
    assert scrape.named("sglang:prompt_tokens_total")[0].value == 8128902.0
    buckets = {s.labels["le"]: s.value for s in scrape.named("sglang:time_to_first_token_seconds_bucket")}
    assert (buckets["30.0"], buckets["+Inf"]) == (2513.0, 11008.0)
    assert len(scrape.samples) == 93
    assert scrape.source == "scrape of http://127.0.0.1:30001/metrics on gpu1"


def test_a_counter_that_does_not_end_in_total_keeps_its_name() -> None:
    scrape = read("# TYPE replays counter\nreplays 3\n# TYPE tokens_total counter\ntokens_total 4\n")
    assert [(s.name, s.value) for s in scrape.samples] == [("replays", 3.0), ("tokens_total", 4.0)]


def test_the_no_value_mark_of_dcgm_is_no_temperature() -> None:
    scrape = read(shared("metrics/dcgm-exporter_readme_sample.prom").read_text())
    assert {s.name: s.value for s in scrape.samples} == {"DCGM_FI_DEV_SM_CLOCK": 139.0, "DCGM_FI_DEV_MEM_CLOCK": 405.0}


@pytest.mark.parametrize("mark", ["9223372036854775792", "9223372036854775794", "9.223372036854775794e18"])
def test_every_spelling_of_no_value_is_no_sample(mark: str) -> None:
    assert read(f"a {mark}\nb 1\n").samples == (Sample("b", {}, 1.0),)


def test_values_that_are_no_numbers_are_kept_for_the_one_who_asks() -> None:
    a, b, c = read("a NaN\nb +Inf\nc -Inf\n").samples
    assert isnan(a.value)
    assert (b.value, c.value) == (inf, -inf)


def test_a_line_with_its_own_time_keeps_it() -> None:
    assert read("a 1 1700000000500\n").samples == (Sample("a", {}, 1.0, 1700000000.5),)


def test_a_series_that_stands_twice_counts_once() -> None:
    assert read('a{x="1",y="2"} 1\na{y="2",x="1"} 5\n').samples == (Sample("a", {"x": "1", "y": "2"}, 1.0),)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('a 1\nb{c="} 3\n', 2),
        ("a 1\n\n# a comment\nb\n", 4),
        ("a one", 1),
        ('a{x="1",x="2"} 1', 1),
        ("<html>", 1),
        ('a{b="', 1),
    ],
)
def test_one_bad_line_spoils_the_text_and_is_named(text: str, line: int) -> None:
    found = problem(text)
    assert found.code == "metrics.unreadable"
    assert found.values["line"] == line
    assert found.values["text"] == text.split("\n")[line - 1]


def test_a_hostile_line_takes_no_time_and_is_quoted_shortly() -> None:
    began = time.process_time()
    found = problem('a{b="' + '\\"' * 500_000 + '"} 1')
    assert time.process_time() - began < 1.0
    assert len(str(found.values["text"])) == 80


@given(st.text(max_size=200))
def test_any_text_is_samples_or_one_finding(text: str) -> None:
    found = read_scrape(text, instance="a@b", url=URL, at=0.0)
    assert isinstance(found, Scrape) or found.code == "metrics.unreadable"


@given(st.dictionaries(st.text(max_size=20), st.floats(), max_size=6))
def test_what_the_official_client_writes_is_read_back(values: dict[str, float]) -> None:
    registry = CollectorRegistry()
    gauge = Gauge("g", "help\nof it", ["x"], registry=registry)
    for label, value in values.items():
        gauge.labels(label).set(value)
    found = {s.labels["x"]: s.value for s in read(generate_latest(registry).decode()).samples}
    kept = {label: value for label, value in values.items() if value != 2.0**63}
    assert found.keys() == kept.keys()
    assert all(found[x] == v or (isnan(found[x]) and isnan(v)) for x, v in kept.items())


def answer(**changed: object) -> HttpAnswer:
    plain = HttpAnswer(id="metrics", url=URL, status=200, body="a 1\n", at=7.0, took_s=0.1)
    return plain.model_copy(update=changed)


def test_an_answer_of_a_host_is_read_with_its_time() -> None:
    found = answered_scrape("decode@gpu1", answer())
    assert found == Scrape("decode@gpu1", URL, 7.0, (Sample("a", {}, 1.0),))


@pytest.mark.parametrize(
    ("given_answer", "code"),
    [
        (None, "metrics.no-answer"),
        (answer(status=503), "metrics.no-answer"),
        (answer(status=None, error="refused"), "metrics.no-answer"),
        (answer(truncated=True), "metrics.too-long"),
        (answer(body="a"), "metrics.unreadable"),
    ],
)
def test_an_answer_that_is_none_says_why(given_answer: HttpAnswer | None, code: str) -> None:
    found = answered_scrape("decode@gpu1", given_answer)
    assert isinstance(found, Finding)
    assert found.code == code


NONE = Reading(at=0.0, value=5.0)
BEYOND = Reading(at=0.0, value=30.0, beyond=True)
BETWEEN = Reading(at=0.0, value=2.0, most=4.0)


@pytest.mark.parametrize(
    ("reading", "op", "number", "expected"),
    [
        (NONE, ">", 5.0, False),
        (NONE, ">=", 5.0, True),
        (NONE, "<", 5.0, False),
        (NONE, "<=", 5.0, True),
        (NONE, "==", 5.0, True),
        (NONE, "!=", 5.0, False),
        (BEYOND, ">", 30.0, True),
        (BEYOND, ">=", 30.0, True),
        (BEYOND, ">", 29.0, True),
        (BEYOND, ">", 31.0, None),
        (BEYOND, "<", 30.0, False),
        (BEYOND, "<=", 30.0, False),
        (BEYOND, "<", 31.0, None),
        (BEYOND, "==", 30.0, False),
        (BEYOND, "==", 31.0, None),
        (BEYOND, "!=", 30.0, True),
        (BETWEEN, ">", 1.0, True),
        (BETWEEN, ">", 2.0, None),
        (BETWEEN, ">=", 2.0, True),
        (BETWEEN, ">", 4.0, False),
        (BETWEEN, ">=", 4.0, None),
        (BETWEEN, "<", 2.0, False),
        (BETWEEN, "<", 4.0, None),
        (BETWEEN, "<=", 4.0, True),
        (BETWEEN, "==", 3.0, None),
        (BETWEEN, "==", 5.0, False),
        (BETWEEN, "!=", 5.0, True),
    ],
)
def test_a_reading_that_is_known_in_part_decides_only_what_it_can(
    reading: Reading, op: Comparison, number: float, expected: bool | None
) -> None:
    assert reading.holds(op, number) is expected


def test_a_reading_is_finite() -> None:
    with pytest.raises(ValueError, match="finite"):
        Reading(at=0.0, value=inf)


def test_no_readings_always_say_why() -> None:
    plain = {"name": "q", "query": "q", "unit": "s", "source": "scrape of x on y", "start": 0.0, "end": 1.0}
    with pytest.raises(ValueError, match="no problem says why"):
        Measured.model_validate(plain)
    found = missing("q", query="q", unit="s", source="scrape of x on y", start=0.0, end=1.0)
    assert found.last is None
    assert found.problem is not None
    assert found.problem.code == "metrics.missing"


def test_readings_stand_in_time_order() -> None:
    late, early = Reading(at=2.0, value=1.0), Reading(at=1.0, value=1.0)
    with pytest.raises(ValueError, match="time order"):
        Measured(name="q", query="q", unit="s", source="x", start=0.0, end=3.0, readings=(late, early))
