"""What an improvement was paid with: throughput against latency, latency against throughput."""

from __future__ import annotations

from collections.abc import Iterator

from policies.abtest.arms import Point
from policies.abtest.estimate import Estimate, estimated
from policies.abtest.judgement import Margins
from policies.bench.metrics import better, family
from policies.finding import Finding

# the first of each that every run has is looked at
AGAINST_THROUGHPUT = (
    ("median_ttft_ms", "mean_ttft_ms"),
    ("median_tpot_ms", "mean_tpot_ms", "median_itl_ms", "mean_itl_ms"),
    ("p99_ttft_ms", "p95_ttft_ms", "p90_ttft_ms"),
    ("p99_tpot_ms", "p95_tpot_ms", "p90_tpot_ms", "p99_itl_ms", "p95_itl_ms", "p90_itl_ms"),
)
AGAINST_LATENCY = (("output_throughput",), ("request_throughput",))
SHOWN_RUNS = 3


def trade_findings(point: Point, metric: str, margins: Margins, *, interleaved: bool) -> list[Finding]:
    """Metrics on the other side that are worse by more than their margin, and are shown to be worse at all.

    Below three runs nothing is shown, and nothing is said.
    """
    if point.n < SHOWN_RUNS:
        return []
    found: list[Finding] = []
    for name in _others(point, metric):
        kind, way = family(name), better(name)
        if kind is None or way is None:
            continue
        a = [run.metrics[name].value for run in point.a]
        b = [run.metrics[name].value for run in point.b]
        worse = _worse(estimated(a, b, interleaved=interleaved), way)
        margin = margins.of(kind)
        limit = 1 / (1 - margin) if way == "higher" else 1 + margin
        if worse.bounds is not None and worse.ratio > limit and worse.bounds[0] > 1:
            shown = worse.ratio if way == "lower" else 1 / worse.ratio
            values = {"point": point.load.label, "metric": name, "percent": f"{(shown - 1) * 100:+.1f}"}
            values["margin"] = f"{margin * 100:g}"
            found.append(Finding(code="abtest.traded", effect="note", values={**values}))
    return found


def _worse(estimate: Estimate, way: str) -> Estimate:
    return estimate if way == "lower" else estimate.flipped()


def _others(point: Point, metric: str) -> Iterator[str]:
    groups = AGAINST_THROUGHPUT if family(metric) == "throughput" else AGAINST_LATENCY
    runs = (*point.a, *point.b)
    for group in groups:
        name = next((n for n in group if all(n in r.metrics and r.metrics[n].value > 0 for r in runs)), None)
        if name is not None and name != metric:
            yield name
