"""Queries on recorded scrapes are answered as a real Prometheus answers them on the same samples."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf, isclose, isnan, nan
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from policies.finding import Finding
from policies.metrics.evaluate import evaluate
from policies.metrics.history import History
from policies.metrics.promql import Query, compile_query
from policies.metrics.samples import Sample, Scrape
from tests.real.prometheus_server import PrometheusServer

pytestmark = pytest.mark.real

BEGAN = 1_764_583_200.0
LASTS_S = 900.0
BOUNDS = (0.1, 0.5, 1.0, 5.0, 30.0, inf)


def fleet_scrapes() -> list[Scrape]:
    """Fifteen minutes of three engines: uneven scrapes with gaps, ranks that agree and disagree, restarts."""
    rng = random.Random(4)
    scrapes = []
    for instance in ("decode@gpu1", "decode@gpu2", "prefill@gpu1"):
        at, tokens, started, shape = BEGAN, 0, BEGAN - 5000, [0] * len(BOUNDS)
        while at < BEGAN + LASTS_S:
            if rng.random() < 0.04:
                started, tokens, shape = at - 3, 0, [0] * len(BOUNDS)
            tokens += rng.randrange(0, 900)
            for _ in range(rng.randrange(0, 12)):
                place = rng.choice((1, 2, 3, 4, 5)) if instance != "decode@gpu2" else 5
                shape = [count + (i >= place) for i, count in enumerate(shape)]
            scrapes.append(Scrape(instance, "u", round(at, 3), tuple(engine(rng, tokens, started, shape))))
            at += rng.choice((14.9, 15.0, 15.123, 15.2, 1.5, 61.0)) if rng.random() < 0.97 else 400.0
    return scrapes


def engine(rng: random.Random, tokens: int, started: float, shape: list[int]) -> Iterator[Sample]:
    running = rng.randrange(0, 60)
    for dp in ("0", "1"):
        for tp in ("0", "1"):
            off = rng.randrange(0, 3) if rng.random() < 0.2 else 0
            labels = {"dp_rank": dp, "tp_rank": tp, "model_name": "meta-llama/Llama-3.1-8B"}
            yield Sample("sglang:num_running_reqs", labels, running + off)
            yield Sample("sglang:num_queue_reqs", labels, rng.choice((0, 0, 3, 11)))
        yield Sample("tokens_total", {"dp_rank": dp}, tokens + int(dp))
    yield Sample("odd", {"kind": "a.b"}, rng.choice((nan, inf, -inf, 0.0, -2.0, 2.5)))
    yield Sample("odd", {"kind": "axb\n"}, rng.choice((nan, inf, -4.0, 8.0)))
    yield Sample("odd", {}, rng.choice((1.0, 0.0)))
    yield Sample("process_start_time_seconds", {}, started)
    for bound, count in zip(BOUNDS, shape, strict=True):
        yield Sample("ttft_bucket", {"le": "+Inf" if bound == inf else str(bound)}, count)
    yield Sample("ttft_count", {}, shape[-1])


@dataclass(frozen=True, slots=True)
class Oracle:
    server: PrometheusServer
    client: httpx.Client
    history: History

    def check(self, text: str, at: float) -> int:
        """Compare one query at one moment; gives how many series both answered with."""
        query = compile_query(text)
        assert isinstance(query, Query), (text, query)
        ours = evaluate(query, self.history, at)
        theirs = self.server.ask(self.client, text, at)
        if isinstance(ours, Finding):
            assert ours.code == "metrics.ambiguous", (text, ours)
            assert theirs["status"] == "error", (text, theirs)
            assert theirs["errorType"] == "execution"
            return 0
        assert theirs["status"] == "success", (text, ours, theirs)
        found = {tuple(sorted(point.labels.items())): point.value.number for point in ours}
        told = theirs["data"]["result"]
        if theirs["data"]["resultType"] == "scalar":
            expected = {(): float(told[1])}
        else:
            expected = {tuple(sorted(one["metric"].items())): float(one["value"][1]) for one in told}
        assert found.keys() == expected.keys(), (text, at, found, expected)
        for labels, value in expected.items():
            assert same(found[labels], value), (text, at, labels, found[labels], value)
        return len(found)


def same(a: float, b: float) -> bool:
    return (isnan(a) and isnan(b)) or isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    scrapes = fleet_scrapes()
    server = PrometheusServer(Path(tmp_path_factory.mktemp("prometheus")))
    server.fill(scrapes)
    server.start()
    try:
        with httpx.Client() as client:
            yield Oracle(server, client, History(scrapes))
    finally:
        server.stop()


TABLE = (
    "sum(max by (instance, dp_rank) (sglang:num_running_reqs))",
    "time() - process_start_time_seconds",
    'sum by (le) (rate(ttft_bucket{instance=~"decode@.*"}[2m]))',
    "histogram_quantile(0.5, sum by (le, instance) (rate(ttft_bucket[5m])))",
    "histogram_quantile(0.99, ttft_bucket)",
    "max(histogram_quantile(0.99, ttft_bucket))",
    'rate(tokens_total{dp_rank="0"}[1m])',
    "increase(tokens_total[3m])",
    "delta(sglang:num_running_reqs[90s])",
    "irate(tokens_total[5m])",
    "idelta(odd[5m])",
    "sum without (tp_rank) (sglang:num_queue_reqs)",
    "avg by (kind) (odd)",
    "min(odd)",
    "max(odd)",
    "count by (instance) (sglang:num_running_reqs > 10)",
    "sum by (instance) (sglang:num_running_reqs) / sum by (instance) (sglang:num_queue_reqs)",
    "sum by (instance) (sglang:num_running_reqs) > bool sum by (instance) (sglang:num_queue_reqs)",
    "sglang:num_running_reqs == sglang:num_queue_reqs",
    'tokens_total{dp_rank="0"} - on (instance) process_start_time_seconds',
    "tokens_total - on (instance, dp_rank) tokens_total",
    "30 > sglang:num_running_reqs",
    "-sglang:num_running_reqs",
    '{__name__=~"sglang:.*",dp_rank="0"}',
    'sum by (__name__) ({__name__=~"sglang:.*"})',
    'odd{kind=""}',
    'odd{kind!=""}',
    'odd{kind=~"a.b"}',
    'odd{kind=~"a\\\\.b|"}',
    'odd{kind!~"a[^x]b"}',
    'odd{kind=~"(a|x)+\\\\.?\\\\w{1,2}"}',
    'odd{kind=~"a.b\\\\s"}',
    "odd % 3",
    "odd ^ 0.5",
    "odd ^ -3",
    "odd / 0",
    "odd % 0",
    "0 / odd",
    "1 - 2 ^ 3 ^ 0 * time()",
    "2 >= bool 2",
    "odd >= odd",
    "odd != bool odd",
)
UNANSWERED = (
    "tokens_total - on (instance) process_start_time_seconds",
    "sglang:num_running_reqs > ignoring (tp_rank) sglang:num_queue_reqs",
    "sglang:num_running_reqs + on (instance) process_start_time_seconds",
    '-{__name__=~"sglang:.*"}',
    'rate({__name__=~"sglang:.*"}[2m])',
    "nothing",
    "sum(nothing)",
    "count(nothing) + 1",
)
MOMENTS = (BEGAN - 10, BEGAN, BEGAN + 100.001, BEGAN + 333.3, BEGAN + 700, BEGAN + LASTS_S, BEGAN + LASTS_S + 310)


@pytest.mark.parametrize("text", TABLE)
def test_the_table_of_queries(oracle: Oracle, text: str) -> None:
    assert sum(oracle.check(text, at) for at in MOMENTS) > 0


@pytest.mark.parametrize("text", UNANSWERED)
def test_what_is_no_data_or_an_error_there_is_so_here(oracle: Oracle, text: str) -> None:
    assert sum(oracle.check(text, at) for at in MOMENTS) == 0


label_names = st.sampled_from(("instance", "dp_rank", "tp_rank", "kind", "le", "__name__"))
values = st.sampled_from(("decode@gpu1", "prefill@gpu1", "0", "1", "a.b", ""))
patterns = st.sampled_from((".*", ".+", "decode@.*", "0|1", "a.b", "(a|p).*", "[0-9]", "[^0]", "", "d?.*1"))
matcher = st.one_of(
    st.builds('{}{}"{}"'.format, label_names.filter(lambda n: n != "__name__"), st.sampled_from(("=", "!=")), values),
    st.builds(
        '{}{}"{}"'.format, label_names.filter(lambda n: n != "__name__"), st.sampled_from(("=~", "!~")), patterns
    ),
)
names = st.sampled_from(("sglang:num_running_reqs", "sglang:num_queue_reqs", "tokens_total", "odd", "ttft_bucket"))
selector = st.builds(lambda n, ms: n + ("{" + ",".join(ms) + "}" if ms else ""), names, st.lists(matcher, max_size=2))
ranged = st.builds(
    "{}({}[{}])".format,
    st.sampled_from(("rate", "increase", "delta", "irate", "idelta")),
    selector,
    st.sampled_from(("1m", "90s", "5m", "15s", "10m")),
)
grouping = st.one_of(
    st.just(""),
    st.builds(
        lambda how, ls: f" {how} ({', '.join(ls)}) ",
        st.sampled_from(("by", "without")),
        st.lists(label_names, max_size=3, unique=True),
    ),
)
reducers = st.sampled_from(("sum", "max", "min", "avg", "count"))
numbers = st.sampled_from(("0", "1", "-2", "2.5", "60", "time()"))
arithmetic = st.sampled_from(("+", "-", "*", "/"))
comparison = st.sampled_from(("==", "!=", ">", "<", ">=", "<=", "> bool", "== bool", "<= bool"))


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    aggregate = st.builds("{}{}({})".format, reducers, grouping, inner)
    return st.one_of(
        aggregate,
        st.builds("({}) {} {}".format, inner, arithmetic | comparison, numbers),
        st.builds("{} {} ({})".format, numbers, arithmetic | comparison, inner),
        st.builds("{} {} {}".format, aggregate, arithmetic | comparison, aggregate),
        st.builds(
            lambda a, op, how, ls, b: f"({a}) {op} {how} ({', '.join(ls)}) ({b})",
            inner,
            arithmetic | comparison,
            st.sampled_from(("on", "ignoring")),
            st.lists(label_names.filter(lambda n: n != "__name__"), max_size=3, unique=True),
            inner,
        ),
        st.builds("-({})".format, inner),
    )


queries = st.recursive(selector | ranged, larger, max_leaves=4)


@settings(max_examples=250, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(queries, st.integers(-30_000, int(LASTS_S * 1000) + 400_000))
def test_any_query_of_the_supported_part(oracle: Oracle, text: str, after_ms: int) -> None:
    oracle.check(text, BEGAN + after_ms / 1000)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.floats(0.0, 1.0),
    st.sampled_from(("ttft_bucket", "rate(ttft_bucket[3m])", "sum by (le) (increase(ttft_bucket[5m]))")),
    st.integers(0, int(LASTS_S * 1000)),
)
def test_any_quantile(oracle: Oracle, q: float, buckets: str, after_ms: int) -> None:
    oracle.check(f"histogram_quantile({q!r}, {buckets})", BEGAN + after_ms / 1000)


def test_the_one_answer_that_differs_is_told_apart(oracle: Oracle) -> None:
    """Prometheus gives the last bound for a quantile beyond it; here the answer says that it lies beyond."""
    text, at = 'histogram_quantile(0.99, ttft_bucket{instance="decode@gpu2"})', BEGAN + LASTS_S
    query = compile_query(text)
    assert isinstance(query, Query)
    points = evaluate(query, oracle.history, at)
    assert not isinstance(points, Finding)
    assert [(p.value.number, p.value.beyond) for p in points] == [(30.0, True)]
    result: list[Mapping[str, list[object]]] = oracle.server.ask(oracle.client, text, at)["data"]["result"]
    assert [one["value"][1] for one in result] == ["30"]
