"""Evidence lines: each ratio with its load, interval and n; the verdict's word and what it stands on; correctness."""

from __future__ import annotations

from collections.abc import Sequence

from bot.cards.correctness import correctness, short_correctness
from bot.markup import Markup, joined
from bot.messages import say, sentence
from policies.applicability import Standing
from policies.bench.metrics import short as short_metric
from policies.evidence import Draft, Effect, Record, remarks
from policies.finding import Finding

MOST_RECORDS = 3
MOST_SHORT = 2
MOST_POINTS = 12
MOST_PROBLEMS = 6
MOST_CONTEXT = 6
MOST_REASONS = 2
# notes that say what to measure next, or what the number was paid with
TOLD = frozenset({
    "abtest.first-run", "abtest.left-out", "abtest.one-run", "abtest.two-runs", "abtest.traded", "abtest.drift",
})  # fmt: skip


def lines(
    records: tuple[Record, ...], knob: str, value: str | None, at: float, standings: Sequence[Standing] = ()
) -> list[Markup]:
    """Newest first, of this knob and value; or that there are none. `at` is the time that ages count to.

    standings: what records were worth when the plan was made, where that is told.
    """
    fitting = [r for r in records if r.knob == knob and r.value == value]
    if not fitting:
        return [] if value is None else [say("evidence.absent", knob=knob, value=value)]
    newest = sorted(fitting, key=lambda r: r.at, reverse=True)
    told = [line for record in newest[:MOST_RECORDS] for line in one(record, at, standings)]
    left = len(newest) - MOST_RECORDS
    return [*told, say("plan.more-lines", n=left)] if left > 0 else told


def short(
    records: tuple[Record, ...], knob: str, value: str | None, at: float, standings: Sequence[Standing] = ()
) -> list[Markup]:
    """As `lines`, a line a record, of the two newest."""
    fitting = sorted((r for r in records if r.knob == knob and r.value == value), key=lambda r: -r.at)
    if not fitting:
        return [] if value is None else [say("evidence.absent", knob=knob, value=value)]
    return [_short(record, at, _of(record, standings)) for record in fitting[:MOST_SHORT]]


def _short(record: Record, at: float, standing: Standing | None) -> Markup:
    head = say("evidence.short", **_head(record, at, standing))
    more: list[Markup] = []
    if record.summary is not None and record.summary.no_worse_up_to is not None:
        more.append(say("evidence.no-worse", concurrency=record.summary.no_worse_up_to))
    more += [sentence(f) for f in problems(record, frozenset({"refuse"}))[:1]]
    return joined([head, *more, *short_correctness(record.correctness), *_reasons(standing, MOST_REASONS)])


def one(record: Record, at: float, standings: Sequence[Standing] = ()) -> list[Markup]:
    """The lines of one record."""
    standing = _of(record, standings)
    head = say("evidence.record", by=record.by, **_head(record, at, standing))
    more = [say("evidence.against", baseline=record.baseline), *correctness(record.correctness)]
    if record.summary is not None and record.summary.no_worse_up_to is not None:
        more.append(say("evidence.no-worse", concurrency=record.summary.no_worse_up_to))
    if record.measured_on is not None:
        more.append(say("evidence.measured-on", day=record.measured_on))
    told = context(record)
    if told:
        more.append(say("evidence.context", context=told))
    said = [sentence(f) for f in problems(record, frozenset({"refuse", "warn"}), TOLD)[:MOST_PROBLEMS]]
    told_today = [*_reserve(standing), *_same(standing)]
    return [head, Markup(" · ".join(more)), *said, *(sentence(f) for f in remarks(record)), *told_today]


def _of(record: Record, standings: Sequence[Standing]) -> Standing | None:
    return next((found for found in standings if found.record == record.id), None)


def _holds(standing: Standing | None) -> Markup:
    """`, same build and GPU`, and the word where it is not valid; nothing where nobody looked."""
    if standing is None:
        return Markup("")
    short = next((f.values["short"] for f in standing.findings if f.code == "applies.same"), None)
    told = [say("applies.same", fields=short)] if short is not None else []
    if standing.word != "valid":
        told.append(say("applies.today", word=standing.word))
    return Markup("".join(f", {part}" for part in told))


def _reasons(standing: Standing | None, most: int) -> list[Markup]:
    """What keeps the record from being valid today, the worst first."""
    return [] if standing is None else [sentence(finding) for finding in standing.reasons[:most]]


def _reserve(standing: Standing | None) -> list[Markup]:
    """All of it in a line, with the word."""
    said = _reasons(standing, MOST_PROBLEMS)
    word = standing.word if standing is not None else ""
    return [say("applies.reserve", word=word, said=joined(said, "; "))] if said else []


def _same(standing: Standing | None) -> list[Markup]:
    return [] if standing is None else [sentence(f) for f in standing.findings if f.code == "applies.same"]


def _head(record: Record, at: float, standing: Standing | None) -> dict[str, str | float]:
    return {
        "holds": _holds(standing),
        "record": record.id,
        "klass": record.klass,
        "age_s": max(0.0, at - record.at),
        "points": points(record),
        "metric": short_metric(record.metric),
        "runs": runs(record),
    }


def problems(record: Draft, effects: frozenset[str], codes: frozenset[str] = frozenset()) -> list[Finding]:
    """What the judge found, by effect or code, the worst first."""
    found = record.judgement.problems if record.judgement is not None else ()
    return [finding for finding in found if finding.effect in effects or finding.code in codes]


def points(record: Draft) -> str:
    """`+12.8 % C64 · +5.7 % C96`, the largest effect first; with its interval where there is one."""
    ordered = sorted(record.points, key=lambda p: p.ratio, reverse=record.better == "higher")
    told = [_point(p) for p in ordered[:MOST_POINTS]]
    left = len(ordered) - MOST_POINTS
    return " · ".join([*told, f"{left} more points"] if left > 0 else told) or "no load in common"


def _point(point: Effect) -> str:
    if point.ci is None:
        return f"{percent(point.ratio)} % {point.load}"
    return f"{percent(point.ratio)} % [{percent(point.ci[0])}, {percent(point.ci[1])}] {point.load}"


def percent(ratio: float) -> str:
    """The change of a ratio in percent: `+16.8`; two digits below a tenth."""
    change = (ratio - 1) * 100
    return f"{change:+.1f}" if abs(change) >= 0.1 or change == 0 else f"{change:+.2f}"


def runs(record: Draft) -> Markup:
    """How many runs an arm has, and whether that gives an interval. A summary has no runs to compute one from."""
    counts = [n for p in record.points for n in (p.n_a, p.n_b)] or [0]
    least, most = min(counts), max(counts)
    shown = any(p.ci is not None for p in record.points)
    if shown:
        return say("evidence.runs-interval", n=f"{least}" if least == most else f"{least} to {most}")
    if most == 1:
        return say("evidence.one-run")
    if least == most:
        return say("evidence.runs", n=most)
    return say("evidence.uneven-runs", least=least, most=most)


def context(record: Draft) -> str:
    """Where it was measured, in few words; nothing where nobody told."""
    known = record.context
    count = f"{known.accelerators} x " if known.accelerators is not None else ""
    told = [
        f"{count}{known.accelerator or 'unknown accelerator'}" if count or known.accelerator else "",
        f"model {known.model}" if known.model else "",
        f"build {known.version}" if known.version else "",
        f"commit {known.commit[:19]}" if known.commit else "",
        *(f"{name} {value}" for name, value in list(known.other.items())[:MOST_CONTEXT]),
    ]
    return ", ".join(part for part in told if part)
