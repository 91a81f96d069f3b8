"""guidellm report, version 2: one run a benchmark, each metric split by how its requests ended.

Source: guidellm 0.8. Only requests that succeeded are read; request latency alone is in seconds.
"""

from __future__ import annotations

from collections.abc import Iterator

from policies.bench.fields import Fields, Wanted, shown
from policies.bench.identity import home_less
from policies.bench.metrics import MS_PER_S, statistics
from policies.bench.reader import MOST_INSIDE, Counts, Reader, made, names
from policies.bench.run import Identity, Load, Run, Unlimited
from policies.bench.source import Located

NAME = "guidellm-v2"
VERSION = 2
ENDED = "successful"
LATENCIES = {
    "time_to_first_token_ms": ("ttft", 1.0),
    "time_per_output_token_ms": ("tpot", 1.0),
    "inter_token_latency_ms": ("itl", 1.0),
    "request_latency": ("e2e_latency", MS_PER_S),
}
SPELLED = {"mean": "mean", "median": "median", "std_dev": "std", "min": "min", "max": "max"}
THROUGHPUTS = (
    ("requests_per_second", "request_throughput", "req/s"),
    ("output_tokens_per_second", "output_throughput", "tok/s"),
    ("prompt_tokens_per_second", "input_throughput", "tok/s"),
    ("tokens_per_second", "total_throughput", "tok/s"),
    ("request_concurrency", "measured_concurrency", "req"),
)
PERCENTILES = {"p90": "p90", "p95": "p95", "p99": "p99"}
BY_RATE = {"constant", "poisson", "async"}


def fits(source: Located) -> bool:
    """Benchmarks with metrics beside the tool's metadata."""
    value = source.value
    if not {"benchmarks", "metadata"} <= names(source) or not isinstance(value, dict):
        return False
    metadata, benchmarks = value["metadata"], value["benchmarks"]
    told = isinstance(metadata, dict) and bool({"guidellm_version", "version"} & metadata.keys())
    return told and isinstance(benchmarks, list)


def read(fields: Fields) -> list[Run]:
    """One run a benchmark, in order."""
    version = fields.raw("metadata", "version")
    if version != VERSION or isinstance(version, bool):
        fields.problem(("metadata", "version"), f"the report's version is {shown(version)}, expected {VERSION}")
        return []
    runs: list[Run] = []
    count = fields.size("benchmarks")
    for index in range(count if fields.within(count, MOST_INSIDE, "benchmarks") else 0):
        one = fields.below("benchmarks", index)
        runs += _run(one, fields)
        fields.problems += one.problems
    if not runs and not fields.problems:
        fields.problem(("benchmarks",), "there are no benchmarks in the report, expected at least one")
    return runs


def _run(one: Fields, report: Fields) -> list[Run]:
    metrics = one.quantities(_wanted(one), needed=frozenset({"output_throughput"}))
    completed = one.count("metrics", "request_totals", ENDED, needed=True)
    incomplete = one.count("metrics", "request_totals", "incomplete")
    if incomplete:
        one.warnings.append(f"{incomplete} requests were cut off at the end and are not counted")
    per_in = one.number("metrics", "prompt_token_count", ENDED, "mean")
    per_out = one.number("metrics", "output_token_count", ENDED, "mean")
    counts = Counts(
        completed=completed,
        failed=one.count("metrics", "request_totals", "errored"),
        input_tokens=None if completed is None or per_in is None else per_in * completed,
        output_tokens=None if completed is None or per_out is None else per_out * completed,
        duration_s=one.number("duration", needed=True),
    )
    return made(NAME, one, _load(one, report), metrics, counts, _identity(one, report))


def _wanted(one: Fields) -> Iterator[Wanted]:
    for theirs, ours, unit in THROUGHPUTS:
        yield Wanted(("metrics", theirs, ENDED, "mean"), ours, unit)
    for theirs, (ours, scale) in LATENCIES.items():
        path = ("metrics", theirs, ENDED)
        yield from statistics(one.members(*path), path, ours, SPELLED, scale)
        yield from statistics(tuple(PERCENTILES), (*path, "percentiles"), ours, PERCENTILES, scale)


def _load(one: Fields, report: Fields) -> Load:
    kind = one.text("config", "strategy", "type_")
    concurrency: int | None = None
    rate: float | Unlimited | None = None
    if kind in BY_RATE:
        rate = one.rate("config", "strategy", "rate")
    elif kind == "concurrent":
        concurrency = one.positive("config", "strategy", "streams")
        rate = "inf"
    elif kind == "synchronous":
        concurrency, rate = 1, "inf"
    elif kind == "throughput":
        concurrency, rate = one.positive("config", "strategy", "max_concurrency"), "inf"
    else:
        one.warnings.append("the strategy of the load is not known: no load is read")
    data = ("config", "spec", "data", 0)
    return Load(
        concurrency=concurrency,
        request_rate=rate,
        input_len=report.count(*data, "prompt_tokens"),
        output_len=report.count(*data, "output_tokens"),
        dataset=report.text(*data, "kind"),
        num_prompts=one.positive("config", "constraints", "max_requests", "args", "count"),
    )


def _identity(one: Fields, report: Fields) -> Identity:
    version = report.text("metadata", "guidellm_version")
    return Identity(
        model=home_less(one.text("config", "backend", "model")),
        tool=f"guidellm {version}" if version else None,
        seed=report.count("config", "spec", "seed", "value"),
    )


READER = Reader(NAME, fits, read)
