"""What a reader of one format is, and what all of them share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from policies.bench.fields import Fields
from policies.bench.identity import digest
from policies.bench.run import Identity, Load, Quantity, Run
from policies.bench.source import Located

MOST_RUNS = 2000  # of a file
MOST_INSIDE = 200  # of one document
DISAGREE = 0.02  # throughput against tokens / duration: rounding and ramps stay below


@dataclass(frozen=True, slots=True)
class Reader:
    """`fits` decides by content alone. `read` gives a Run for each of the document's runs that is whole enough."""

    name: str
    fits: Callable[[Located], bool]
    read: Callable[[Fields], list[Run]]


def names(source: Located) -> frozenset[str]:
    """The keys of a document that is one object."""
    return frozenset(source.value) if isinstance(source.value, dict) else frozenset()


@dataclass(slots=True)
class Counts:
    """Requests and tokens of a run. Units: seconds, tokens of all completed requests."""

    completed: int | None = None
    failed: int | None = None
    asked: int | None = None
    input_tokens: float | None = None
    output_tokens: float | None = None
    duration_s: float | None = None


def made(
    name: str,
    fields: Fields,
    load: Load,
    metrics: dict[str, Quantity],
    counts: Counts,
    identity: Identity | None = None,
    arm: str | None = None,
) -> list[Run]:
    """The run, or none when something that it needs is a problem. Says what was derived, and what stays unknown."""
    failed = _failed(fields, counts)
    if counts.completed == 0 and not fields.problems:
        fields.problem((), "no request was completed: nothing was measured")
    if fields.problems:
        return []
    told = identity or Identity()
    per_in, per_out = _per_request(counts.input_tokens, counts), _per_request(counts.output_tokens, counts)
    _agree(fields, metrics, counts)
    return [
        Run(
            format=name,
            load=load,
            metrics=metrics | _derived(per_in, per_out, counts.duration_s),
            completed=counts.completed,
            failed=failed,
            input_tokens_per_request=per_in,
            output_tokens_per_request=per_out,
            duration_s=counts.duration_s,
            identity=told.model_copy(update={"args_sha256": digest(told.args)}),
            arm=arm,
            line=fields.line,
            warnings=tuple(fields.warnings),
        )
    ]


def _failed(fields: Fields, counts: Counts) -> int | None:
    if counts.failed is not None:
        return counts.failed
    if counts.asked is None or counts.completed is None:
        fields.warnings.append("errors unknown: the file has no count of failed requests")
        return None
    if counts.completed > counts.asked:
        fields.problem((), f"{counts.completed} requests completed of {counts.asked} asked, expected at most as many")
        return None
    fields.warnings.append(f"failed derived: {counts.asked} prompts - {counts.completed} completed")
    return counts.asked - counts.completed


def _per_request(tokens: float | None, counts: Counts) -> float | None:
    return tokens / counts.completed if tokens is not None and counts.completed else None


def _agree(fields: Fields, metrics: dict[str, Quantity], counts: Counts) -> None:
    """A throughput that its own tokens and duration do not give is told."""
    for name, amount in (("output_throughput", counts.output_tokens), ("request_throughput", counts.completed)):
        told = metrics.get(name)
        if told is None or amount is None or not counts.duration_s:
            continue
        computed = amount / counts.duration_s
        if abs(computed - told.value) > DISAGREE * max(computed, told.value):
            fields.warnings.append(
                f"`{name}` says {told.value:.6g}, its own counts and duration give {computed:.6g} {told.unit}"
            )


def _derived(per_in: float | None, per_out: float | None, duration_s: float | None) -> dict[str, Quantity]:
    derived = {
        "input_tokens_per_request": (per_in, "tok"),
        "output_tokens_per_request": (per_out, "tok"),
        "duration_s": (duration_s, "s"),
    }
    return {name: Quantity(value=v, unit=unit) for name, (v, unit) in derived.items() if v is not None}
