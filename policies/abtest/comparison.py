"""Are the arms one experiment: same tool, model, build, flags and loads, and no run in both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from policies.abtest.arms import Values
from policies.bench.run import Load, Run
from policies.finding import Effect, Finding

MOST_FLAGS = 6
MOST_LOADS = 8
SECONDS_PER_DAY = 86400
DATE = re.compile(r"(\d{4})-?(\d{2})-?(\d{2})[-T ]?(\d{2}):?(\d{2}):?(\d{2})")
SWEPT = ("concurrency", "request_rate")


def comparison_findings(a: Sequence[Run], b: Sequence[Run], alone: Sequence[Run], common: int) -> list[Finding]:
    """What is wrong with comparing these arms at all. `alone`: runs whose load only one arm has."""
    found = [
        *_same_runs(a, b),
        *_named_arms(a, b),
        *_equal("format", "refuse", {r.format for r in a}, {r.format for r in b}),
        *_known("model", "model-unknown", {r.identity.model for r in a}, {r.identity.model for r in b}),
        *_known(
            "version", "version-unknown", {r.identity.server_version for r in a}, {r.identity.server_version for r in b}
        ),
        *_flags(a, b),
        *_loads(alone, a),
        *_days(a, b),
    ]
    if not common:
        labels = [", ".join(sorted({run.load.label for run in arm})[:MOST_LOADS]) for arm in (a, b)]
        found.append(_finding("no-common-load", "refuse", {"a": labels[0], "b": labels[1]}))
    return found


def _finding(code: str, effect: Effect, values: Values) -> Finding:
    return Finding(code=f"abtest.{code}", effect=effect, values=values)


def _same_runs(a: Sequence[Run], b: Sequence[Run]) -> Iterable[Finding]:
    seen: dict[tuple[str, int, int], str] = {}
    for name, runs in (("A", a), ("B", b)):
        for run in runs:
            key = (run.sha256, run.line, run.order)
            if key in seen and run.sha256:
                where = "in both arms" if seen[key] != name else f"twice in {name}"
                yield _finding("same-run", "refuse", {"file": run.file, "line": run.line, "where": where})
                return
            seen[key] = name


def _named_arms(a: Sequence[Run], b: Sequence[Run]) -> Iterable[Finding]:
    for name, runs in (("A", a), ("B", b)):
        named = sorted({run.arm for run in runs if run.arm is not None})
        if len(named) > 1:
            yield _finding("mixed-arms", "refuse", {"arm": name, "named": ", ".join(named[:MOST_LOADS])})


def _equal(code: str, effect: Effect, a: set[str], b: set[str]) -> Iterable[Finding]:
    if len(a | b) > 1:
        yield _finding(code, effect, {"a": ", ".join(sorted(a)), "b": ", ".join(sorted(b))})


def _known(what: str, unknown: str, a: set[str | None], b: set[str | None]) -> Iterable[Finding]:
    """A difference is refused; not knowing is told."""
    told_a, told_b = {v for v in a if v is not None}, {v for v in b if v is not None}
    if len(told_a | told_b) > 1:
        yield from _equal(what, "refuse", told_a or {"unknown"}, told_b or {"unknown"})
    elif None in a | b:
        arm = "A and B" if None in a and None in b else "A" if None in a else "B"
        yield _finding(unknown, "note", {"arm": arm})


def _flags(a: Sequence[Run], b: Sequence[Run]) -> Iterable[Finding]:
    args_a, args_b = [r.identity.args for r in a], [r.identity.args for r in b]
    if not all(args_a) or not all(args_b):
        return
    every = [*args_a, *args_b]
    differing = sorted({name for args in every for name in args if any(o.get(name) != args[name] for o in every)})
    if differing:
        shown = [f"{name} {_told(args_a, name)} / {_told(args_b, name)}" for name in differing[:MOST_FLAGS]]
        more = len(differing) - MOST_FLAGS
        text = "; ".join(shown) + (f"; {more} more" if more > 0 else "")
        yield _finding("flags", "refuse", {"flags": text})


def _told(arm: Sequence[dict[str, str]], name: str) -> str:
    return ", ".join(sorted({args.get(name, "not set") for args in arm}))


def _loads(alone: Sequence[Run], a: Sequence[Run]) -> Iterable[Finding]:
    """A load of one arm whose concurrency and rate the other has too differs in another field: that is no point."""
    arm_a = {id(run) for run in a}
    of_a = [run for run in alone if id(run) in arm_a]
    of_b = [run for run in alone if id(run) not in arm_a]
    matched: set[int] = set()
    for run in of_a:
        twins = [o for o in of_b if id(o) not in matched and _swept(o.load) == _swept(run.load)]
        if not twins:
            continue
        twin = min(twins, key=lambda o: len(_differing(run.load, o.load)))
        matched |= {id(run), id(twin)}
        field = _differing(run.load, twin.load)[0]
        values: Values = {"point": run.load.label, "field": field}
        values |= {"a": _value(run.load, field), "b": _value(twin.load, field)}
        yield _finding("load-differs", "refuse", values)
    left = [run for run in alone if id(run) not in matched]
    for name, runs in (("A", [r for r in left if id(r) in arm_a]), ("B", [r for r in left if id(r) not in arm_a])):
        if runs:
            labels = list(dict.fromkeys(run.load.label for run in runs))[:MOST_LOADS]
            yield _finding("one-arm-only", "note", {"arm": name, "points": ", ".join(labels)})


def _swept(load: Load) -> tuple[object, ...]:
    return tuple(getattr(load, name) for name in SWEPT)


def _differing(a: Load, b: Load) -> list[str]:
    return [name for name in Load.model_fields if getattr(a, name) != getattr(b, name)]


def _value(load: Load, field: str) -> str:
    value = getattr(load, field)
    return "not told" if value is None else str(value)


def _days(a: Sequence[Run], b: Sequence[Run]) -> Iterable[Finding]:
    """Days between the arms, as the files write their local times."""
    dates_a = [d for run in a if (d := _date(run.identity.date)) is not None]
    dates_b = [d for run in b if (d := _date(run.identity.date)) is not None]
    if not dates_a or not dates_b:
        return
    apart = max((min(dates_b) - max(dates_a)), (min(dates_a) - max(dates_b))).total_seconds() / SECONDS_PER_DAY
    if apart >= 1:
        yield _finding("days-apart", "note", {"days": round(apart)})


def _date(text: str | None) -> datetime | None:
    found = DATE.search(text or "")
    try:
        # local times of unknown zones: only their difference in days is used
        return datetime(*(int(part) for part in found.groups())) if found else None  # type: ignore[arg-type]  # noqa: DTZ001 - six numbers, no zone is told
    except ValueError:
        return None
