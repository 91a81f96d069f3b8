"""AIPerf and GenAI-Perf: the JSON export, each metric an object with its unit and statistics.

Source: aiperf 0.13.0, schema 1.x.
"""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

from policies.bench.fields import Fields, Wanted, plain, shown
from policies.bench.identity import home_less
from policies.bench.metrics import statistics
from policies.bench.reader import Counts, Reader, made
from policies.bench.run import Identity, Load, Run
from policies.bench.source import Key, Located

NAME = "aiperf-json"
# AIPerf's inter token latency is a mean within a request, which others call time per output token
LATENCIES = {
    "time_to_first_token": "ttft",
    "inter_token_latency": "itl",
    "request_latency": "e2e_latency",
    "time_to_second_token": "ttst",
}
THROUGHPUTS = {
    "request_throughput": "request_throughput",
    "goodput": "request_goodput",
    "output_token_throughput": "output_throughput",
    "total_token_throughput": "total_throughput",
}
SPELLED = {"avg": "mean", "min": "min", "max": "max", "std": "std"}
TO_MS = {"ms": 1.0, "us": 1e-3, "ns": 1e-6, "s": 1e3, "sec": 1e3}
PER_SECOND = {"requests/sec": "req/s", "req/s": "req/s", "tokens/sec": "tok/s", "tokens/s": "tok/s"}
DEEPEST = 12
LENGTHS = {
    "input_len": (("input", "prompt", "input_tokens", "mean"), ("input", "synthetic_tokens", "mean"),
                  ("synthetic_input_tokens_mean",)),
    "output_len": (("input", "prompt", "output_tokens", "mean"), ("input", "output_tokens", "mean"),
                   ("output_tokens_mean",)),
}  # fmt: skip


def fits(source: Located) -> bool:
    """At least two of its metrics as an object with a unit."""
    value = source.value
    if not isinstance(value, dict):
        return False
    known = [value[name] for name in (*LATENCIES, *THROUGHPUTS) if name in value]
    return sum(isinstance(one, dict) and "unit" in one for one in known) >= 2


def read(fields: Fields) -> list[Run]:
    """The run."""
    wanted = [*_latencies(fields), *_throughputs(fields)]
    metrics = fields.quantities(wanted, needed=frozenset({"output_throughput"}))
    if fields.raw("was_cancelled") is True or fields.raw("is_complete") is False:
        name = "was_cancelled" if fields.raw("was_cancelled") is True else "is_complete"
        fields.problem((name,), "the run was not finished, expected a complete one")
    completed = fields.count("request_count", "avg", needed=True)
    per_in = fields.number("input_sequence_length", "avg")
    per_out = fields.number("output_sequence_length", "avg")
    counts = Counts(
        completed=completed,
        failed=_failed(fields),
        input_tokens=None if completed is None or per_in is None else per_in * completed,
        output_tokens=None if completed is None or per_out is None else per_out * completed,
        duration_s=_duration_s(fields),
    )
    return made(NAME, fields, _load(fields), metrics, counts, _identity(fields))


def _latencies(fields: Fields) -> Iterator[Wanted]:
    for theirs, ours in LATENCIES.items():
        scale = _scale_ms(fields, theirs)
        if scale is not None:
            yield from statistics(fields.members(theirs), (theirs,), ours, SPELLED, scale)


def _throughputs(fields: Fields) -> Iterator[Wanted]:
    for theirs, ours in THROUGHPUTS.items():
        if theirs not in fields.members():
            continue
        unit = fields.raw(theirs, "unit")
        if not isinstance(unit, str) or unit not in PER_SECOND:
            fields.problem((theirs, "unit"), f"the unit of `{theirs}` is {shown(unit)}, expected one per second")
            continue
        yield Wanted((theirs, "avg"), ours, PER_SECOND[unit])
    if "output_token_throughput" not in fields.members():
        fields.problem((), "`output_token_throughput` is missing, expected a number with its unit")


def _scale_ms(fields: Fields, name: str) -> float | None:
    if name not in fields.members():
        return None
    unit = fields.raw(name, "unit")
    if not isinstance(unit, str) or unit not in TO_MS:
        fields.problem((name, "unit"), f"the unit of `{name}` is {shown(unit)}, expected {', '.join(TO_MS)}")
        return None
    return TO_MS[unit]


def _failed(fields: Fields) -> int | None:
    told = fields.count("error_request_count", "avg")
    if told is None and fields.raw("error_summary") == []:
        return 0
    return told


def _duration_s(fields: Fields) -> float | None:
    scale = _scale_ms(fields, "benchmark_duration")
    value = fields.number("benchmark_duration", "avg")
    return None if scale is None or value is None else value * scale / TO_MS["s"]


def _load(fields: Fields) -> Load:
    lengths = {
        name: next((n for path in paths if (n := fields.count("input_config", *path)) is not None), None)
        for name, paths in LENGTHS.items()
    }
    concurrency, rate = _only(fields, "concurrency"), _only(fields, "request_rate")
    return Load(
        concurrency=fields.positive(*concurrency) if concurrency else None,
        request_rate=fields.rate(*rate) if rate else None,
        input_len=lengths["input_len"],
        output_len=lengths["output_len"],
    )


def _only(fields: Fields, name: str) -> tuple[Key, ...] | None:
    """The place of an option in `input_config`, whose nesting differs by version; None when two places differ."""
    found = [path for path in _places(fields.raw("input_config"), name, ("input_config",)) if fields.raw(*path)]
    values = {str(fields.raw(*path)) for path in found}
    if len(values) > 1:
        fields.warnings.append(f"`{name}` stands in several places of input_config with different values: not read")
    return found[0] if len(values) == 1 else None


def _places(value: JsonValue, name: str, at: tuple[Key, ...]) -> Iterator[tuple[Key, ...]]:
    if not isinstance(value, dict) or len(at) > DEEPEST:
        return
    for key, inner in value.items():
        if key == name and not isinstance(inner, dict | list):
            yield (*at, key)
        yield from _places(inner, name, (*at, key))


def _identity(fields: Fields) -> Identity:
    models = fields.raw("input_config", "endpoint", "model_names")
    model = models[0] if isinstance(models, list) and models else None
    version = fields.text("aiperf_version")
    return Identity(
        model=home_less(plain(model, 200)) if isinstance(model, str) else None,
        tool=f"aiperf {version}" if version else None,
        date=fields.text("start_time"),
    )


READER = Reader(NAME, fits, read)
