"""Whether readings fall, rise or do neither.

Falling: at least three readings; the last is at least a tenth below the first, of the larger of the two; and of all
pairs of readings at least three in four fall (Kendall's tau of -0.5 or less). Rising is the mirror of it.

Source: the count of falling and rising pairs is the S of the Mann-Kendall trend test (Mann 1945, Kendall 1975), which
asks for no shape of the curve and is not moved by one outlier. With three readings in a row chance alone makes one
in six fall each time, so that a trend is one reading among others and never the whole of a cause. A tenth is ours:
first tokens after a cold start fall by four tenths (FACTS-serving 4.3), what moves less is noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal

FEWEST = 3
LEAST_CHANGE = 0.1
LEAST_TAU = 0.5
MOST = 240  # evenly taken from more, as pairs grow with the square

Direction = Literal["falling", "rising", "neither"]


def direction(values: Sequence[float]) -> Direction | None:
    """The way of readings in time order; None for fewer than three."""
    if len(values) < FEWEST:
        return None
    first, last = values[0], values[-1]
    if abs(last - first) < LEAST_CHANGE * max(abs(first), abs(last)) or first == last:
        return "neither"
    step = -(-len(values) // MOST)
    pairs = list(combinations(values[::step], 2))
    rising = sum(a < b for a, b in pairs)
    falling = sum(a > b for a, b in pairs)
    if last < first and falling - rising >= LEAST_TAU * len(pairs):
        return "falling"
    if last > first and rising - falling >= LEAST_TAU * len(pairs):
        return "rising"
    return "neither"
