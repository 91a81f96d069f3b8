"""A second opinion on causes, by brute force, with nothing of the product: plain tuples in, plain words out.

A statement is ("cmp", metric, op, number), ("trend", metric, way), ("state", word), ("not", s), ("and", s...) or
("or", s...). A window is a dict: start, end, started, state (the set of words left open, or None), readings
{metric: [(time, least, most, beyond)]}, counters (metrics that only go back on a restart).

What is not known is tried both ways: a statement holds when it is true whatever the unknown parts are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

FRESH_S = 120
OPS: dict[str, Callable[[float, float], bool]] = {
    "==": operator.eq, "!=": operator.ne, ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le,
}  # fmt: skip

Statement = tuple[Any, ...]
Window = dict[str, Any]


def atoms(statement: Statement) -> Iterator[Statement]:
    """The parts that are looked up, each place of its own."""
    if statement[0] in {"not", "and", "or"}:
        for part in statement[1:]:
            yield from atoms(part)
    else:
        yield statement


def value(statement: Statement, given: Iterator[bool]) -> bool:
    """The truth when the atoms are `given`, in their order."""
    if statement[0] in {"not", "and", "or"}:
        parts = [value(part, given) for part in statement[1:]]
        return not parts[0] if statement[0] == "not" else all(parts) if statement[0] == "and" else any(parts)
    return next(given)


def answers(statement: Statement, window: Window) -> set[bool]:
    """Every truth that the readings leave open."""
    open_ = [sorted(possible(atom, window)) for atom in atoms(statement)]
    return {value(statement, iter(world)) for world in product(*open_)}


def possible(atom: Statement, window: Window) -> set[bool]:
    """Both where the readings do not say, or not all of them say the same."""
    both = {True, False}
    if atom[0] == "state":
        if window["state"] is None:
            return both
        return {word == atom[1] or (atom[1] == "busy" and word == "saturated") for word in window["state"]}
    seen = [r for r in window["readings"].get(atom[1], []) if window["start"] <= r[0] <= window["end"]]
    if not seen or max(r[0] for r in seen) < window["end"] - FRESH_S:
        return both
    if atom[0] == "cmp":
        compare = OPS[atom[2]]
        return {compare(might, atom[3]) for r in seen for might in might_be(r, atom[3])}
    if window["started"] is not None:
        seen = [r for r in seen if r[0] >= window["started"]]
    if len(seen) < 3 or any(r[3] or r[1] != r[2] for r in seen):
        return both
    values = [r[1] for r in seen]
    if atom[1] in window["counters"] and sorted(values) != values:
        return both
    return {way(values) == atom[2]}


def might_be(reading: tuple[float, float, float, bool], about: float) -> list[float]:
    """Values that a reading may really have had, among them those just around a number."""
    _, least, most, beyond = reading
    near = [about - 1e-3, about, about + 1e-3, about + 1]
    if beyond:
        return [v for v in [*near, least + 1e-3, 1e15] if v > least]
    return [v for v in [*near, least, most] if least <= v <= most]


def way(values: list[float]) -> str:
    """By the words of the definition: the ends a tenth apart, three in four of all pairs."""
    first, last = values[0], values[-1]
    if first == last or abs(first - last) < max(abs(first), abs(last)) / 10:
        return "neither"
    n = len(values)
    pairs = [(values[i], values[j]) for i in range(n) for j in range(i + 1, n)]
    balance = sum((b > a) - (b < a) for a, b in pairs)
    if balance <= -len(pairs) / 2 and last < first:
        return "falling"
    return "rising" if balance >= len(pairs) / 2 and last > first else "neither"


def word(
    needs: Statement,
    refuted_by: Statement | None,
    effect: Window,
    baseline: Window | None,
    rivals: list[tuple[Statement, Statement | None]],
    now: float,
) -> str:
    """The verdict, from the words of the design."""
    if effect["end"] > now:
        return "unverified"
    holds = answers(needs, effect)
    against = answers(refuted_by, effect) if refuted_by is not None else {False}
    if against == {True} or holds == {False}:
        return "refuted"
    if holds != {True}:
        return "unverified"
    explained = [
        True
        for need, against_it in rivals
        if answers(need, effect) == {True} and (against_it is None or answers(against_it, effect) != {True})
    ]
    differs = baseline is not None and baseline["end"] < effect["start"] and answers(needs, baseline) == {False}
    return "verified" if against == {False} and not explained and differs else "consistent"


def change_word(
    effect: Statement | None,
    must: Statement | None,
    windows: tuple[Window, Window | None, Window | None],
    others: tuple[str, ...] | None,
    rivals: list[tuple[Statement, Statement | None]],
    now: float,
) -> str:
    """The verdict on a change, from the words of the facts: after it, before it, and the old state again."""
    after, before, again = windows
    if after["end"] > now or (again is not None and again["end"] > now):
        return "unverified"
    guilty = answers(must, after) if must is not None else {True}
    if guilty == {False}:
        return "refuted"
    seen = answers(effect, after) if effect is not None else {True, False}
    if seen != {True}:
        return "refuted" if seen == {False} else "unverified"
    was, back = (answers(effect, one) if one is not None and effect else {True, False} for one in (before, again))
    if {True} in (was, back):
        return "refuted"
    explained = [
        True
        for need, against_it in rivals
        if answers(need, after) == {True} and (against_it is None or answers(against_it, after) != {True})
    ]
    went_and_came = before is not None and before["end"] < after["start"] and was == {False}
    went_again = again is not None and again["start"] > after["end"] and back == {False}
    alone = others == () and not explained
    return (
        "verified" if went_and_came and went_again and alone and guilty == {True} and alike(*windows) else "consistent"
    )


def alike(*windows: Window | None) -> bool:
    """The middle reading of `load` is known in each, and the most of them is twice the least or two more at most."""
    middles = []
    for one in windows:
        seen = [r for r in one["readings"]["load"] if one["start"] <= r[0] <= one["end"]] if one is not None else []
        if not seen or any(r[3] or r[1] != r[2] for r in seen):
            return False
        values = sorted(r[1] for r in seen)
        middles.append((values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2)
    return bool(max(middles) <= 2 * min(middles) or max(middles) <= min(middles) + 2)
