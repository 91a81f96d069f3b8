"""The ratio B / A with its uncertainty, from runs. One run is one observation; all on the log of the metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from policies.abtest.student import quantile, tail

LEVEL = 0.95
LARGEST_LOG = 700.0


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean of ln(B / A), its standard error and degrees of freedom. `se` None: too few runs for one."""

    mean: float
    se: float | None
    df: float

    @property
    def ratio(self) -> float:
        """B / A."""
        return _exp(self.mean)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The two-sided 95 % interval of the ratio."""
        if self.se is None:
            return None
        half = quantile((1 + LEVEL) / 2, self.df) * self.se
        return _exp(self.mean - half), _exp(self.mean + half)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The one-sided 95 % bounds of the ratio, lower and upper, each on its own."""
        if self.se is None:
            return None
        half = quantile(LEVEL, self.df) * self.se
        return _exp(self.mean - half), _exp(self.mean + half)

    def p_beyond(self, ratio: float) -> float:
        """Two-sided p that the ratio is on its side of `ratio` by chance; 1 or more evidence against is 1."""
        distance = self.mean - math.log(ratio)
        if self.se is None:
            return 1.0
        if self.se == 0:
            return 0.0 if distance > 0 else 1.0
        return min(1.0, 2 * tail(distance / self.se, self.df))

    def flipped(self) -> Estimate:
        """The same for A / B."""
        return Estimate(-self.mean, self.se, self.df)


def paired(a: Sequence[float], b: Sequence[float]) -> Estimate:
    """Runs that took turns: the r-th of A and of B are a pair, and what both share cancels."""
    differences = [math.log(y / x) for x, y in zip(a, b, strict=True)]
    n = len(differences)
    se = math.sqrt(variance(differences) / n) if n > 1 else None
    return Estimate(fmean(differences), se, max(1, n - 1))


def separate(a: Sequence[float], b: Sequence[float]) -> Estimate:
    """Runs without a common order: Welch's t on logs."""
    la, lb = [math.log(x) for x in a], [math.log(x) for x in b]
    mean = fmean(lb) - fmean(la)
    if len(la) < 2 or len(lb) < 2:
        return Estimate(mean, None, 1)
    va, vb = variance(la) / len(la), variance(lb) / len(lb)
    if va + vb == 0:
        return Estimate(mean, 0.0, len(la) + len(lb) - 2)
    df = (va + vb) ** 2 / (va**2 / (len(la) - 1) + vb**2 / (len(lb) - 1))
    return Estimate(mean, math.sqrt(va + vb), df)


def estimated(a: Sequence[float], b: Sequence[float], *, interleaved: bool) -> Estimate:
    """Paired where the runs took turns and none is missing, else separate."""
    return paired(a, b) if interleaved and len(a) == len(b) else separate(a, b)


def geometric_mean(values: Sequence[float]) -> float:
    """The mean on the log, back in the unit."""
    return _exp(fmean(math.log(value) for value in values))


def _exp(log: float) -> float:
    """A ratio that stays finite, however far two runs are apart."""
    return math.exp(min(log, LARGEST_LOG))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p values, in the order given. Source: Holm 1979."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    worst = 0.0
    for rank, index in enumerate(order):
        worst = max(worst, min(1.0, p_values[index] * (len(p_values) - rank)))
        adjusted[index] = worst
    return adjusted
