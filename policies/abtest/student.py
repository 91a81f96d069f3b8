"""Student's t distribution: tail probability and quantile, for any degrees of freedom from 1 on.

Source: the incomplete beta function by its continued fraction (Lentz); checked against scipy to 1e-9 in the tests.
"""

from __future__ import annotations

import math
from functools import lru_cache

TINY = 1e-300
ENOUGH = 1e-16
MOST_STEPS = 10_000
BISECTIONS = 200


def tail(t: float, df: float) -> float:
    """P(T > t)."""
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    if t < 0:
        return 1.0 - tail(-t, df)
    return 0.5 * _incomplete_beta(df / (df + t * t), t * t / (df + t * t), df / 2, 0.5)


@lru_cache(maxsize=1024)
def quantile(p: float, df: float) -> float:
    """The t that a fraction `p` of the distribution lies below. `p` is between 0 and 1, neither of them."""
    if p < 0.5:
        return -quantile(1.0 - p, df)
    wanted = 1.0 - p
    low, high = 0.0, 1.0
    while tail(high, df) > wanted:
        low, high = high, high * 2
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if tail(middle, df) > wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _incomplete_beta(x: float, rest: float, a: float, b: float) -> float:
    """The regularised incomplete beta function of x; `rest` is 1 - x without the loss of its digits."""
    if x <= 0:
        return 0.0
    if rest <= 0:
        return 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1.0 - front * _fraction(rest, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1.0 / _not_zero(1.0 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, MOST_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / _not_zero(1.0 + even * d)
        c = _not_zero(1.0 + even / c)
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1.0 / _not_zero(1.0 + odd * d)
        c = _not_zero(1.0 + odd / c)
        value *= d * c
        if abs(d * c - 1.0) < ENOUGH * 10:
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY
