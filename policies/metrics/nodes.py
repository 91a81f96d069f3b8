"""A query that can be answered from recorded scrapes, as a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from policies.metrics.regex import Pattern

NAME = "__name__"
Arithmetic = Literal["+", "-", "*", "/", "%", "^"]
Compare = Literal["==", "!=", ">", "<", ">=", "<="]
Over = Literal["rate", "increase", "delta", "irate", "idelta"]
Reduce = Literal["sum", "max", "min", "avg", "count"]
ARITHMETIC: tuple[str, ...] = get_args(Arithmetic)
COMPARE: tuple[str, ...] = get_args(Compare)
OVER: tuple[str, ...] = get_args(Over)
REDUCE: tuple[str, ...] = get_args(Reduce)


@dataclass(frozen=True)
class Matcher:
    """A condition on one label; a label that is absent counts as empty."""

    label: str
    op: Literal["=", "!=", "=~", "!~"]
    value: str

    @cached_property
    def _pattern(self) -> Pattern:
        return Pattern(self.value)

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a series with these labels fits."""
        found = labels.get(self.label, "")
        match self.op:
            case "=":
                return found == self.value
            case "!=":
                return found != self.value
            case "=~":
                return self._pattern.matches(found)
            case "!~":
                return not self._pattern.matches(found)


@dataclass(frozen=True, slots=True)
class Number:
    """A literal."""

    value: float


@dataclass(frozen=True, slots=True)
class Time:
    """`time()`: the moment of the evaluation, in seconds."""


@dataclass(frozen=True, slots=True)
class Selector:
    """The newest sample of every series that fits."""

    matchers: tuple[Matcher, ...]

    @property
    def name(self) -> str | None:
        """The one name that it asks for, None when it may be any."""
        return next((m.value for m in self.matchers if m.label == NAME and m.op == "="), None)


@dataclass(frozen=True, slots=True)
class Change:
    """How every series that fits moved over a range before the evaluation. Units: range_s is seconds."""

    func: Over
    selector: Selector
    range_s: float


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Series put together. keep: the labels that stay (`by`), or those that go (`without`)."""

    op: Reduce
    labels: tuple[str, ...]
    without: bool
    expr: Node


@dataclass(frozen=True, slots=True)
class Negate:
    """`-expr`."""

    expr: Node


@dataclass(frozen=True, slots=True)
class Binary:
    """Two sides. labels: those that series are paired by (`on`), or that the pairing leaves out (`ignoring`)."""

    op: Arithmetic | Compare
    lhs: Node
    rhs: Node
    as_bool: bool = False
    labels: tuple[str, ...] = ()
    on: bool = False


@dataclass(frozen=True, slots=True)
class Quantile:
    """`histogram_quantile(q, expr)`."""

    q: Node
    expr: Node


Node = Number | Time | Selector | Change | Aggregate | Negate | Binary | Quantile


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it."""
    yield node
    match node:
        case Aggregate(expr=inner) | Negate(inner):
            yield from walk(inner)
        case Binary(lhs=one, rhs=other) | Quantile(one, other):
            yield from walk(one)
            yield from walk(other)
        case Change(selector=selector):
            yield selector
        case Number() | Time() | Selector():
            pass
