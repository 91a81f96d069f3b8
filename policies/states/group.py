"""The state of a service or a fleet, from those of its instances."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from policies.causes.statement import StateWord
from policies.states.state import State

ORDER: tuple[StateWord, ...] = ("idle", "busy", "saturated", "hung")
"""A group is what its worst instance is: idle only when all are, hung when one is."""


def together(states: Mapping[str, State]) -> State | None:
    """One state for all instances; None where there are none."""
    if not states:
        return None
    if len(states) == 1:
        return next(iter(states.values()))
    possible = reduce(_worse, ({ORDER.index(word) for word in state.possible} for state in states.values()))
    words = tuple(word for number, word in enumerate(ORDER) if number in possible)
    known = len(words) == 1
    works = {state.has_work for state in states.values()}
    starts = [state.started_at for state in states.values() if state.started_at is not None]
    return State(
        has_work=True if True in works else None if None in works else False,
        moved=tuple(one for state in states.values() for one in state.moved),
        possible=words,
        citations=tuple(dict.fromkeys(c for state in states.values() for c in state.citations)),
        unknown=() if known else tuple(f"{name} {one}" for name, state in states.items() for one in state.unknown),
        findings=() if known else tuple(finding for state in states.values() for finding in state.findings),
        started_at=max(starts) if starts else None,
    )


def _worse(one: set[int], other: set[int]) -> set[int]:
    return {max(a, b) for a in one for b in other}
