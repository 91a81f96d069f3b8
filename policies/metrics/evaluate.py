"""Answering a query from recorded scrapes at one moment, as Prometheus would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never, cast

from policies.finding import Finding
from policies.metrics.changes import changed
from policies.metrics.histogram import bucket_quantile
from policies.metrics.history import LOOKBACK_S, History, Key, ms
from policies.metrics.nodes import (
    ARITHMETIC,
    NAME,
    Aggregate,
    Arithmetic,
    Binary,
    Change,
    Compare,
    Negate,
    Node,
    Number,
    Quantile,
    Reduce,
    Selector,
    Time,
)
from policies.metrics.promql import Query
from policies.metrics.values import PastBounds, Value, average, calculate, compare, greatest, least, total

LE = "le"


@dataclass(frozen=True, slots=True)
class Point:
    """One series of an answer; a number that belongs to none has no labels."""

    labels: Mapping[str, str]
    value: Value


Answer = Sequence[Point]


class Ambiguous(ValueError):
    """Series that have the same labels where each has to be one of its own."""


def evaluate(query: Query, history: History, at: float, *, lookback_s: float = LOOKBACK_S) -> Answer | Finding:
    """Every series of the answer, none at all where there is no data; a finding when there can be no answer.

    Units: at is epoch seconds. `metrics.ambiguous`: series cannot be told apart or paired one to one.
    `metrics.past-bounds`: a quantile is beyond its histogram, and the query hangs on how far.
    """
    try:
        found = _Moment(history, at, ms(lookback_s)).answer(query.root)
    except (Ambiguous, PastBounds) as error:
        code = "metrics.ambiguous" if isinstance(error, Ambiguous) else "metrics.past-bounds"
        return Finding(code=code, effect="warn", values={"query": query.text, "construct": str(error)})
    return [Point({}, found)] if isinstance(found, Value) else found


@dataclass(frozen=True, slots=True)
class _Moment:
    history: History
    at_s: float
    lookback: int

    def answer(self, node: Node) -> Value | Answer:
        match node:
            case Number(number):
                return Value(number)
            case Time():
                return Value(ms(self.at_s) / 1000)
            case Selector():
                series = self.history.select(node)
                newest = ((s.labels, s.newest(ms(self.at_s), self.lookback)) for s in series)
                return [Point(labels, Value(value)) for labels, value in newest if value is not None]
            case Change(func, selector, range_s):
                end = ms(self.at_s)
                start = end - ms(range_s)
                moved = (
                    (s.labels, changed(func, s.between(start, end), start, end)) for s in self.history.select(selector)
                )
                return _distinct(Point(_nameless(labels), Value(v)) for labels, v in moved if v is not None)
            case Aggregate(op, labels, without, expr):
                return _aggregate(op, labels, without, self._series(expr))
            case Negate(expr):
                inner = self.answer(expr)
                if isinstance(inner, Value):
                    return _negated(inner)
                return _distinct(Point(_nameless(p.labels), _negated(p.value)) for p in inner)
            case Binary():
                return self._binary(node)
            case Quantile(q, expr):
                return _quantile(self.answer(q), self._series(expr))
            case _:
                assert_never(node)

    def _series(self, node: Node) -> Answer:
        found = self.answer(node)
        return [] if isinstance(found, Value) else found  # the parser lets no number through

    def _binary(self, node: Binary) -> Value | Answer:
        lhs, rhs = self.answer(node.lhs), self.answer(node.rhs)
        if isinstance(lhs, Value) and isinstance(rhs, Value):
            return _result(node, lhs, rhs) or Value(0.0)  # numbers are compared with `bool` only
        if isinstance(lhs, Value):
            return _distinct(_with_number(node, point, lhs, point.value) for point in cast("Answer", rhs))
        if isinstance(rhs, Value):
            return _distinct(_with_number(node, point, point.value, rhs) for point in lhs)
        return _distinct(_paired(node, lhs, rhs))


def _negated(value: Value) -> Value:
    return calculate("-", Value(-0.0), value)


def _result(node: Binary, a: Value, b: Value) -> Value | None:
    """The value of one pair, None where a comparison leaves it out."""
    if node.op in ARITHMETIC:
        return calculate(cast("Arithmetic", node.op), a, b)
    holds = compare(cast("Compare", node.op), a, b)
    if node.as_bool:
        return Value(1.0 if holds else 0.0)
    return a if holds else None


def _kept(node: Binary, labels: Mapping[str, str]) -> Mapping[str, str]:
    """A comparison that filters keeps the name; every other result is another quantity."""
    return _nameless(labels) if node.as_bool or node.op in ARITHMETIC else labels


def _with_number(node: Binary, point: Point, a: Value, b: Value) -> Point | None:
    """One series against a number; a comparison that filters keeps the series' own value, whichever side it is on."""
    value = _result(node, a, b)
    if value is None:
        return None
    filtered = not node.as_bool and node.op not in ARITHMETIC
    return Point(_kept(node, point.labels), point.value if filtered else value)


def _paired(node: Binary, lhs: Answer, rhs: Answer) -> Iterable[Point]:
    """Series of both sides that have the same labels, each one once."""
    if not lhs or not rhs:
        return
    others: dict[Key, Point] = {}
    for point in rhs:
        if others.setdefault(_key(_paired_by(node, point.labels)), point) is not point:
            raise Ambiguous("several series on the right side have the labels of one pair")
    used: set[Key] = set()
    for point in lhs:
        key = _key(_paired_by(node, point.labels))
        other = others.get(key)
        value = None if other is None else _result(node, point.value, other.value)
        if value is None:
            continue
        if key in used:
            raise Ambiguous("several series on the left side have the labels of one pair")
        used.add(key)
        labels = _kept(node, point.labels)
        kept = {k: v for k, v in labels.items() if (k in node.labels) is node.on}
        yield Point(kept, value)


def _paired_by(node: Binary, labels: Mapping[str, str]) -> dict[str, str]:
    if node.on:
        return {k: v for k, v in labels.items() if k in node.labels}
    return {k: v for k, v in labels.items() if k != NAME and k not in node.labels}


_REDUCERS: dict[Reduce, Callable[[list[Value]], Value]] = {
    "sum": total,
    "max": greatest,
    "min": least,
    "avg": average,
    "count": lambda values: Value(float(len(values))),
}


def _aggregate(op: Reduce, labels: tuple[str, ...], without: bool, points: Answer) -> Answer:
    groups: dict[Key, list[Value]] = {}
    for point in points:
        if without:
            kept = {k: v for k, v in point.labels.items() if k not in labels and k != NAME}
        else:
            kept = {k: v for k, v in point.labels.items() if k in labels}
        groups.setdefault(_key(kept), []).append(point.value)
    return [Point(dict(key), _REDUCERS[op](values)) for key, values in groups.items()]


def _quantile(q: Value | Answer, points: Answer) -> Answer:
    if not isinstance(q, Value):
        return []
    groups: dict[Key, list[tuple[float, float]]] = {}
    for point in points:
        try:
            bound = float(point.labels.get(LE, ""))
        except ValueError:
            continue  # no bucket
        rest = {k: v for k, v in point.labels.items() if k not in {LE, NAME}}
        groups.setdefault(_key(rest), []).append((bound, point.value.number))
    return [Point(dict(key), bucket_quantile(q.number, buckets)) for key, buckets in groups.items()]


def _nameless(labels: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in labels.items() if k != NAME}


def _key(labels: Mapping[str, str]) -> Key:
    return tuple(sorted(labels.items()))


def _distinct(points: Iterable[Point | None]) -> Answer:
    """Those that there are. Raises: Ambiguous when two of them have the same labels."""
    found: dict[Key, Point] = {}
    for point in points:
        if point is not None and found.setdefault(_key(point.labels), point) is not point:
            raise Ambiguous("several series have the same labels once their names are gone")
    return list(found.values())
