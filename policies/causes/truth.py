"""Whether a statement holds in a window: yes, no, or not known and why. What is not known is never yes and never no.

A comparison holds when every reading of the window says so, and does not hold when every reading says the opposite:
readings on both sides, none, old ones and values known only in part leave it unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from policies.causes.query import is_counter
from policies.causes.statement import (
    Compared,
    Either,
    Every,
    InState,
    Metric,
    Not,
    Statement,
    Trend,
    atoms_of,
)
from policies.causes.trend import FEWEST, direction
from policies.causes.window import FRESH_S, Window
from policies.citation import Citation, cited
from policies.finding import Finding
from policies.metrics.measured import Reading

Word = Literal["holds", "fails", "unknown"]


@dataclass(frozen=True, slots=True)
class Truth:
    """`why` is there when it is unknown, and only then."""

    word: Word
    why: tuple[Finding, ...] = ()


HOLDS, FAILS = Truth("holds"), Truth("fails")


def truth_of(statement: Statement, window: Window) -> Truth:
    """Kleene's three-valued logic over the readings of one window."""
    match statement:
        case Compared():
            return _compared(statement, window)
        case Trend():
            found = _trend(statement, window)
            return negation(found) if statement.negated else found
        case InState():
            return _in_state(statement, window)
        case Not(part=part):
            return negation(truth_of(part, window))
        case Every(parts=parts):
            return conjunction([truth_of(part, window) for part in parts])
        case Either(parts=parts):
            return negation(conjunction([negation(truth_of(part, window)) for part in parts]))


def negation(truth: Truth) -> Truth:
    """Not: what is unknown stays unknown."""
    return {"holds": FAILS, "fails": HOLDS, "unknown": truth}[truth.word]


def conjunction(truths: Iterable[Truth]) -> Truth:
    """And: one that fails decides; else one that is unknown does."""
    found = list(truths)
    if any(truth.word == "fails" for truth in found):
        return FAILS
    why = distinct(f for truth in found for f in truth.why)
    return Truth("unknown", why) if why else HOLDS


def distinct(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once, in order."""
    found: list[Finding] = []
    for finding in findings:
        if finding not in found:
            found.append(finding)
    return tuple(found)


def citations_of(statement: Statement, window: Window) -> tuple[Citation, ...]:
    """The readings that a statement is judged on: the first and the last of each metric, and those of the state."""
    found: list[Citation] = []
    for atom in atoms_of(statement):
        if isinstance(atom, InState):
            found += window.state.citations if window.state is not None else ()
            continue
        measured = window.of(atom.metric)
        readings = _readings(atom.metric, window, since=isinstance(atom, Trend))
        if measured is None or not readings:
            continue
        ends = dict.fromkeys((readings[0], readings[-1]))
        found += [cited(measured, reading) for reading in ends]
    return tuple(dict.fromkeys(found))


def _compared(atom: Compared, window: Window) -> Truth:
    readings = _readings(atom.metric, window)
    if not readings:
        return _none(atom.metric, window)
    said = [reading.holds(atom.op, atom.number) for reading in readings]
    holding = said.count(True)
    if None in said:
        return _unknown("claim.not-exact", metric=str(atom.metric), statement=str(atom))
    if 0 < holding < len(said):
        return _unknown("claim.mixed", statement=str(atom), holding=holding, n=len(said))
    return HOLDS if holding else FAILS


def _trend(atom: Trend, window: Window) -> Truth:
    """Of the readings since the last start: a process that was restarted counts from nothing again."""
    readings = _readings(atom.metric, window, since=True)
    if not readings:
        return _none(atom.metric, window)
    values = [reading.value for reading in readings]
    if not all(reading.exact for reading in readings):
        return _unknown("claim.not-exact", metric=str(atom.metric), statement=str(atom))
    measured = window.of(atom.metric)
    query = measured.query if measured is not None else ""
    if is_counter(query) and any(b < a for a, b in pairwise(values)):
        return _unknown("claim.went-back", metric=str(atom.metric))
    found = direction(values)
    if found is None:
        return _unknown("claim.few-readings", metric=str(atom.metric), n=len(values), needed=FEWEST)
    return HOLDS if found == atom.way else FAILS


def _in_state(atom: InState, window: Window) -> Truth:
    if window.state is None:
        return _unknown("claim.no-state", word=atom.word)
    found = window.state.is_in(atom.word)
    if found is None:
        return Truth("unknown", window.state.findings or _unknown("claim.no-state", word=atom.word).why)
    return HOLDS if found is not atom.negated else FAILS


def _readings(metric: Metric, window: Window, *, since: bool = False) -> tuple[Reading, ...]:
    """The readings in the window, none when the newest of them is old. since: only those of the newest process."""
    measured = window.of(metric)
    found = window.within(measured) if measured is not None else ()
    if not found or not window.is_fresh(found[-1]):
        return ()
    start = window.started_at if since and window.started_at is not None else window.start
    return tuple(reading for reading in found if reading.at >= start)


def _none(metric: Metric, window: Window) -> Truth:
    """Why there is nothing to judge on: the problem that came with it, old readings, or it was not asked."""
    measured = window.of(metric)
    if measured is None:
        return _unknown("claim.not-measured", metric=str(metric))
    if not measured.readings and measured.problem is not None:
        return Truth("unknown", (measured.problem,))
    newest = measured.readings[-1].at if measured.readings else None
    return _unknown("claim.stale", metric=str(metric), at=newest, end=window.end, fresh_s=FRESH_S)


def _unknown(code: str, **values: str | float | None) -> Truth:
    return Truth("unknown", (Finding(code=code, effect="note", values={**values}),))
