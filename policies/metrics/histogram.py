"""Quantiles of a histogram, as far as its buckets tell them.

Source: bucketQuantile in Prometheus 2.42, promql/quantile.go, but for one thing: where the quantile falls into the
bucket `+Inf`, Prometheus gives that bucket's lower bound as if it were the quantile. Here it is told to lie beyond it.
"""

from __future__ import annotations

import math

from policies.metrics.values import Value


def bucket_quantile(q: float, buckets: list[tuple[float, float]]) -> Value:
    """The q-quantile of (upper bound, cumulative count) pairs; NaN when they cannot say it."""
    if math.isnan(q):
        return Value(math.nan)
    if q < 0 or q > 1:
        return Value(math.copysign(math.inf, q))
    bounds, counts = _merged(buckets)
    if len(bounds) < 2 or bounds[-1] != math.inf or not counts[-1] > 0:
        return Value(math.nan)
    rank = q * counts[-1]
    place = next((i for i, count in enumerate(counts[:-1]) if count >= rank), len(counts) - 1)
    if place == len(counts) - 1:
        return Value(bounds[-2], beyond=True)
    if place == 0 and bounds[0] <= 0:
        return Value(bounds[0])
    low, below = (bounds[place - 1], counts[place - 1]) if place > 0 else (0.0, 0.0)
    return Value(low + (bounds[place] - low) * _divided(rank - below, counts[place] - below))


def _merged(buckets: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Bounds rising, equal ones added up (`30` and `30.0`), counts never falling."""
    by_bound: dict[float, float] = {}
    for bound, count in buckets:
        by_bound[bound] = by_bound.get(bound, 0.0) + count
    bounds = sorted(by_bound)
    counts: list[float] = []
    for bound in bounds:
        counts.append(max(by_bound[bound], counts[-1]) if counts else by_bound[bound])
    return bounds, counts


def _divided(a: float, b: float) -> float:
    return a / b if b else math.nan
