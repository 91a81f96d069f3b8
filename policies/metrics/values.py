"""Numbers of a query, some of which are only known to lie beyond another one, and what can be done with them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from policies.metrics.nodes import Arithmetic, Compare


class PastBounds(ValueError):
    """What the query does with a quantile beyond the last bound of its histogram cannot be told."""


@dataclass(frozen=True, slots=True)
class Value:
    """A number; `beyond`: the true one is above it, and how far is not known."""

    number: float
    beyond: bool = False


def calculate(op: Arithmetic, a: Value, b: Value) -> Value:
    """`a op b` as floating point numbers do it: division by 0 is infinite, what is undefined is NaN.

    Raises: PastBounds.
    """
    number = _plain(op, a.number, b.number)
    if not (a.beyond or b.beyond):
        return Value(number)
    grows = op == "+" or (op == "-" and not b.beyond)
    scaled = not (a.beyond and b.beyond) and (b if a.beyond else a).number > 0
    if grows or (scaled and (op == "*" or (op == "/" and a.beyond))):
        return Value(number, beyond=True)
    raise PastBounds(op)


def compare(op: Compare, a: Value, b: Value) -> bool:
    """Whether `a op b`.

    Raises: PastBounds when what is known does not decide it.
    """
    if a.beyond and b.beyond:
        raise PastBounds(op)
    if b.beyond:
        turned: dict[Compare, Compare] = {">": "<", "<": ">", ">=": "<=", "<=": ">=", "==": "==", "!=": "!="}
        return compare(turned[op], b, a)
    if a.beyond:
        if b.number <= a.number:  # above a bound that is at least as high
            return op in {">", ">=", "!="}
        raise PastBounds(op)
    match op:
        case "==":
            return a.number == b.number
        case "!=":
            return a.number != b.number
        case ">":
            return a.number > b.number
        case "<":
            return a.number < b.number
        case ">=":
            return a.number >= b.number
        case "<=":
            return a.number <= b.number


def total(values: list[Value]) -> Value:
    """Their sum."""
    return Value(sum(v.number for v in values), any(v.beyond for v in values))


def average(values: list[Value]) -> Value:
    """Their mean."""
    added = total(values)
    return Value(added.number / len(values), added.beyond)


def greatest(values: list[Value]) -> Value:
    """The greatest; NaN only where there is nothing else."""
    number = max((v.number for v in values if not math.isnan(v.number)), default=math.nan)
    return Value(number, any(v.beyond for v in values))


def least(values: list[Value]) -> Value:
    """The least; NaN only where there is nothing else.

    Raises: PastBounds when it is not known which one that is.
    """
    number = min((v.number for v in values if not math.isnan(v.number)), default=math.nan)
    exact = [v.number for v in values if not v.beyond]
    if all(v.beyond for v in values) or number in exact or math.isnan(number):
        return Value(number, all(v.beyond for v in values))
    raise PastBounds("min")


def _plain(op: Arithmetic, a: float, b: float) -> float:
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
        case "/":
            return _divided(a, b)
        case "%":
            return math.nan if b == 0 or math.isinf(a) else math.fmod(a, b)
        case "^":
            return _power(a, b)


def _divided(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        odd = b == math.trunc(b) and math.fmod(b, 2) != 0
        return -math.inf if a < 0 and odd else math.inf
    except ValueError:
        if a != 0:
            return math.nan  # a root of a negative number
        odd = b == math.trunc(b) and math.fmod(b, 2) != 0
        return math.copysign(math.inf, a) if odd else math.inf
