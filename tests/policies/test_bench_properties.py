"""No content makes a reader fail, and none makes a number out of what is no number."""

from __future__ import annotations

import json
import math
import random
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from policies.bench.reading import read_runs
from policies.bench.run import Reading
from tests.shared import ROOT, shared

NAMES = sorted(json.loads(p.read_text())["file"] for p in (ROOT / "tests" / "golden" / "bench").glob("*.json"))
NUMBER = re.compile(rb"(?<=[:\[,])( ?)(-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?)(?=[,\]}\s])")
JUNK = (b'"fast"', b"NaN", b"Infinity", b"-Infinity", b"-1", b"1e999", b"true", b"[]", b"{}", b'""', b"null", b"1e300")
CSV_JUNK = (b"fast", b"nan", b"inf", b"-1", b"1e999", b"", b"1,2", b"12.5.1", b'"1,23"')
KEYS = (
    "backend", "dataset_name", "completed", "duration", "output_throughput", "request_rate", "max_concurrency",
    "model_id", "tokenizer_id", "num_prompts", "burstiness", "median_ttft_ms", "median_ttft", "p99_tpot",
    "request_throughput", "time_to_first_token", "unit", "avg", "p50", "output_token_throughput", "request_count",
    "benchmarks", "metadata", "version", "metrics", "request_totals", "successful", "results", "command", "times",
    "load_summary", "successes", "count", "throughput", "latency", "wall_seconds", "per_request", "output_tokens",
    "configurations", "independent_runs", "run_values", "num_concurrent_requests", "results_ttft_s_mean",
    "results_number_errors", "results_error_rate", "input_config", "concurrency", "server_info", "api_key", "tag",
    "errors", "config", "strategy", "type_",
)  # fmt: skip


@cache
def data(name: str) -> bytes:
    path: Path = shared("bench-results") / name
    return path.read_bytes()


def numbers(found: Reading) -> list[dict[str, float]]:
    return [{name: quantity.value for name, quantity in run.metrics.items()} for run in found.runs]


def sound(found: Reading) -> None:
    """What every reading holds: finite numbers, lines that count from 1, JSON that any parser takes."""
    assert found.runs or found.problems or found.skipped
    for run in found.runs:
        assert all(math.isfinite(q.value) and q.value >= 0 for q in run.metrics.values())
        assert run.completed != 0
    assert all(problem.line >= 1 for problem in found.problems)
    json.loads(found.model_dump_json(), parse_constant=pytest.fail)


@pytest.mark.parametrize("name", [n for n in NAMES if not n.endswith(".csv")])
def test_junk_in_place_of_a_number_never_becomes_a_number(name: str) -> None:
    original = data(name)
    before = read_runs(original, "f")
    places = list(NUMBER.finditer(original))
    draw = random.Random(name)
    for place in draw.sample(places, min(len(places), 60 if len(original) < 20000 else 12)):
        for junk in draw.sample(JUNK, 4):
            found = read_runs(original[: place.start(2)] + junk + original[place.end(2) :], "f")
            sound(found)
            if numbers(found) == numbers(before):
                continue  # this place is not read
            line = original.count(b"\n", 0, place.start(2)) + 1
            warned = {w for run in found.runs for w in run.warnings} - {w for r in before.runs for w in r.warnings}
            assert junk == b"null" or line in {p.line for p in found.problems} or warned, (junk, place[0])
            known = {value for run in numbers(before) for value in run.values()}
            assert {value for run in numbers(found) for value in run.values()} <= known


@pytest.mark.parametrize("junk", CSV_JUNK)
def test_junk_in_a_cell_never_becomes_a_number(junk: bytes) -> None:
    name = next(n for n in NAMES if n.endswith(".csv"))
    original = data(name)
    known = {value for run in numbers(read_runs(original, "f")) for value in run.values()}
    for place in re.finditer(rb"(?<=,)[0-9.]+(?=[,\n])", original):
        changed = original[: place.start()] + junk + original[place.end() :]
        found = read_runs(changed, "f")
        sound(found)
        assert {value for run in numbers(found) for value in run.values()} <= known, (junk, place[0])


@pytest.mark.parametrize("name", NAMES)
def test_a_file_cut_anywhere_gives_no_other_number(name: str) -> None:
    original = data(name)
    known = {value for run in numbers(read_runs(original, "f")) for value in run.values()}
    draw = random.Random(name)
    for _ in range(40 if len(original) < 20000 else 10):
        cut = original[: draw.randrange(len(original) - 1)]
        found = read_runs(cut, "f")
        sound(found)
        whole = all("cut off" not in warning for run in found.runs for warning in run.warnings)
        if whole:
            assert {value for run in numbers(found) for value in run.values()} <= known
        if not name.endswith(("jsonl", "csv")):
            assert found.runs == ()


@pytest.mark.parametrize("name", NAMES)
def test_bytes_changed_anywhere_are_read_or_refused(name: str) -> None:
    original = data(name)
    draw = random.Random(name)
    for _ in range(40 if len(original) < 20000 else 8):
        changed = bytearray(original)
        for _ in range(draw.choice((1, 3, 20))):
            at = draw.randrange(len(changed))
            match draw.randrange(3):
                case 0:
                    changed[at] = draw.randrange(256)
                case 1:
                    del changed[at : at + draw.randrange(1, 40)]
                case _:
                    changed[at:at] = draw.choice((b"{", b"}", b"[", b'"', b"\n", b",", b"\xff", b"NaN", b"\\ud800"))
        sound(read_runs(bytes(changed), "f"))


LEAF = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(),
    st.integers(min_value=-(10**20), max_value=10**20),
    st.text(max_size=8),
    st.sampled_from(["random", "inf", "constant", "ms", "tokens/sec", "2"]),
)
DOCUMENT = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=4), inner, max_size=14)
    ),
    max_leaves=40,
)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(DOCUMENT)
def test_any_document_is_read_or_refused(document: JsonValue) -> None:
    sound(read_runs(json.dumps(document).encode("utf-8", "surrogatepass"), "f"))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200) | st.text(alphabet='{}[]":,#\n 1aN-', max_size=80).map(lambda t: t.encode()))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    sound(read_runs(content, "f"))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_published_document_with_other_values_is_read_or_refused(source: st.DataObject) -> None:
    name = source.draw(st.sampled_from([n for n in NAMES if len(data(n)) < 5000 and n.endswith(".json")]))
    document = json.loads(data(name))
    inner = document[0] if isinstance(document, list) else document
    for key in source.draw(st.lists(st.sampled_from(sorted(inner)), max_size=4)):
        inner[key] = source.draw(DOCUMENT)
    sound(read_runs(json.dumps(document).encode("utf-8", "surrogatepass"), "f"))
