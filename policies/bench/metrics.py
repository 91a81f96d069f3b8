"""The names and units that metrics have here, whatever the format calls them, and which way each is better.

Latencies are milliseconds and named `<statistic>_<what>_ms`, e.g. `median_ttft_ms`; throughputs are per second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

from policies.bench.fields import Wanted
from policies.bench.source import Key

Better = Literal["higher", "lower"]
Family = Literal["throughput", "typical latency", "tail latency"]
LATENCIES = ("ttft", "tpot", "itl", "e2e_latency")
LATENCY = re.compile(r"(?P<statistic>mean|median|std|min|max|p[0-9]{1,2}(\.[0-9]+)?)_(?P<what>[a-z0-9_]+)_(ms|s)")
THROUGHPUTS = {
    "request_throughput": "req/s",
    "request_goodput": "req/s",
    "input_throughput": "tok/s",
    "output_throughput": "tok/s",
    "total_throughput": "tok/s",
}
TYPICAL = {"mean", "median", "p50"}
SPREAD = {"std", "min"}
MS_PER_S = 1000.0
SHORT = {
    "output_throughput": "output tok/s",
    "total_throughput": "total tok/s",
    "input_throughput": "input tok/s",
    "request_throughput": "req/s",
}


def family(metric: str) -> Family | None:
    """What kind of metric it is; None for one that has no better direction, such as a spread."""
    if metric in THROUGHPUTS:
        return "throughput"
    found = LATENCY.fullmatch(metric)
    if metric == "time_s":
        return "typical latency"
    if found is None or found["statistic"] in SPREAD:
        return None
    return "typical latency" if found["statistic"] in TYPICAL else "tail latency"


def better(metric: str) -> Better | None:
    """Which way the metric is better; None when there is no such way."""
    kind = family(metric)
    return None if kind is None else "higher" if kind == "throughput" else "lower"


def short(metric: str) -> str:
    """The metric as it stands behind a number."""
    return SHORT.get(metric, metric)


def latencies(keys: tuple[str, ...], names: Mapping[str, str], suffix: str, scale: float) -> Iterator[Wanted]:
    """Flat keys such as `p99_ttft_ms`: `<statistic>_<name><suffix>`, each name to ours by `names`."""
    pattern = re.compile(
        r"(?P<statistic>mean|median|std|min|max|p[0-9]{1,2}(\.[0-9]+)?)_(?P<what>" + "|".join(names) + ")" + suffix
    )
    for key in keys:
        found = pattern.fullmatch(key)
        if found is not None:
            yield Wanted((key,), f"{found['statistic']}_{names[found['what']]}_ms", "ms", scale)


def statistics(
    keys: tuple[str, ...], path: tuple[Key, ...], ours: str, spelled: Mapping[str, str], scale: float
) -> Iterator[Wanted]:
    """An object of statistics at `path`, such as `{mean, median, p99}`; percentiles keep their name."""
    for key in keys:
        statistic = spelled.get(key) or (key if re.fullmatch(r"p[0-9]{1,2}(\.[0-9]+)?", key) else None)
        if statistic is not None:
            yield Wanted((*path, key), f"{'median' if statistic == 'p50' else statistic}_{ours}_ms", "ms", scale)
