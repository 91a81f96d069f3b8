"""Evidence lines: each ratio with its load point, n, and that no interval is known; how many answers differed."""

from __future__ import annotations

from bot.markup import Markup, joined
from bot.messages import say
from policies.evidence import Record, Summary

MOST_RECORDS = 3
MOST_SHORT = 2
MOST_POINTS = 12
UNITS = {"output_throughput": "output tok/s", "total_throughput": "total tok/s"}


def lines(records: tuple[Record, ...], knob: str, value: str | None, at: float) -> list[Markup]:
    """Newest first, of this knob and value; or that there are none. `at` is the time that ages count to."""
    fitting = [r for r in records if r.knob == knob and r.summary.value == value]
    if not fitting:
        return [] if value is None else [say("evidence.absent", knob=knob, value=value)]
    newest = sorted(fitting, key=lambda r: r.at, reverse=True)
    told = [line for record in newest[:MOST_RECORDS] for line in one(record, at)]
    left = len(newest) - MOST_RECORDS
    return [*told, say("plan.more-lines", n=left)] if left > 0 else told


def short(records: tuple[Record, ...], knob: str, value: str | None, at: float) -> list[Markup]:
    """As `lines`, a line a record, of the two newest."""
    fitting = sorted((r for r in records if r.knob == knob and r.summary.value == value), key=lambda r: -r.at)
    if not fitting:
        return [] if value is None else [say("evidence.absent", knob=knob, value=value)]
    return [_short(record, at) for record in fitting[:MOST_SHORT]]


def _short(record: Record, at: float) -> Markup:
    summary = record.summary
    head = say(
        "evidence.short",
        record=record.id,
        klass=record.klass,
        age_s=max(0.0, at - record.at),
        points=points(summary),
        metric=UNITS.get(summary.metric, summary.metric),
        runs=runs(summary),
    )
    more: list[Markup] = []
    if summary.no_worse_up_to is not None:
        more.append(say("evidence.no-worse", concurrency=summary.no_worse_up_to))
    seen = summary.correctness
    if seen is not None and not seen.differing:
        could = f"{seen.could_percent:.2g}"
        more.append(say("evidence.short-correct", differing=0, compared=seen.compared, could=could))
    else:
        more.append(correctness(summary))
    return joined([head, *more])


def one(record: Record, at: float) -> list[Markup]:
    """The lines of one record."""
    summary = record.summary
    head = say(
        "evidence.record",
        record=record.id,
        klass=record.klass,
        age_s=max(0.0, at - record.at),
        by=record.by,
        points=points(summary),
        metric=UNITS.get(summary.metric, summary.metric),
        runs=runs(summary),
    )
    more = [say("evidence.against", baseline=summary.baseline), correctness(summary)]
    if summary.no_worse_up_to is not None:
        more.append(say("evidence.no-worse", concurrency=summary.no_worse_up_to))
    if summary.measured_on is not None:
        more.append(say("evidence.measured-on", day=summary.measured_on))
    if summary.context:
        told = ", ".join(f"{name} {value}" for name, value in list(summary.context.items())[:6])
        more.append(say("evidence.context", context=told))
    return [head, Markup(" · ".join(more))]


def points(summary: Summary) -> str:
    """`+12.8 % C64 · +5.7 % C96`, the largest effect first."""
    ordered = sorted(summary.points, key=lambda p: p.ratio, reverse=summary.better == "higher")
    told = [f"{(p.ratio - 1) * 100:+.1f} % C{p.concurrency}" for p in ordered[:MOST_POINTS]]
    left = len(ordered) - MOST_POINTS
    return " · ".join([*told, f"{left} more points"] if left > 0 else told)


def runs(summary: Summary) -> Markup:
    """How many runs an arm has. A summary has no runs to compute an interval from, and says so."""
    counts = [n for p in summary.points for n in (p.n_a, p.n_b)]
    least, most = min(counts), max(counts)
    if most == 1:
        return say("evidence.one-run")
    if least == most:
        return say("evidence.runs", n=most)
    return say("evidence.uneven-runs", least=least, most=most)


def correctness(summary: Summary) -> Markup:
    """None differing is not none possible: the bound is said with it."""
    seen = summary.correctness
    if seen is None:
        return say("evidence.uncompared")
    if seen.differing:
        return say("evidence.incorrect", differing=seen.differing, compared=seen.compared)
    could = f"{seen.could_percent:.2g}"
    return say("evidence.correct", differing=0, compared=seen.compared, could=could)
