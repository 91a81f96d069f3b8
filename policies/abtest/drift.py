"""Whether an arm moved in one direction from run to run: where runs took no turns, a drift counts as effect."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import fmean

from policies.abtest.arms import Point
from policies.abtest.estimate import LEVEL, Estimate
from policies.abtest.student import quantile
from policies.finding import Effect, Finding

LEAST_RUNS = 3
MATERIAL = 0.01
LARGE = 0.05


def drift_findings(point: Point, metric: str, estimate: Estimate, *, interleaved: bool) -> list[Finding]:
    """One finding for each arm that only rose or only fell, by more than the effect or by much."""
    found: list[Finding] = []
    for name, runs in point.arms:
        values = [run.metrics[metric].value for run in runs]
        steps = [b - a for a, b in pairwise(values)]
        if len(values) < LEAST_RUNS or not (all(s > 0 for s in steps) or all(s < 0 for s in steps)):
            continue
        change = values[-1] / values[0] - 1
        beyond = abs(change) > max(MATERIAL, abs(estimate.ratio - 1))
        if not beyond and abs(change) < LARGE:
            continue
        effect: Effect = "warn" if beyond and not interleaved else "note"
        found.append(
            Finding(
                code="abtest.drift",
                effect=effect,
                values={
                    "point": point.load.label,
                    "arm": name,
                    "word": "rose" if change > 0 else "fell",
                    "percent": f"{abs(change) * 100:.1f}",
                    "n": len(values),
                    "effect_percent": f"{(estimate.ratio - 1) * 100:+.1f}",
                },
            )
        )
    return found if interleaved else [*found, *_explains(point, metric, estimate)]


def _explains(point: Point, metric: str, estimate: Estimate) -> list[Finding]:
    """Runs that took no turns: the trend within the arms, carried on from A to B, could be all of the effect.

    The trend is one slope for both arms on the log, by least squares; its error and that of the effect are added
    to it, at the one-sided 95 % bound.
    """
    arms = [[math.log(run.metrics[metric].value) for run in runs] for _, runs in point.arms]
    if min(len(values) for values in arms) < LEAST_RUNS or abs(estimate.mean) < math.log1p(MATERIAL):
        return []
    places = [(i - (len(v) - 1) / 2, y - fmean(v)) for v in arms for i, y in enumerate(v)]
    spread = sum(x * x for x, _ in places)
    slope = sum(x * y for x, y in places) / spread
    rest = sum((y - slope * x) ** 2 for x, y in places)
    df = len(places) - len(arms) - 1
    error = math.sqrt(rest / df / spread)
    runs = len(places) / len(arms)
    carried = abs(slope) * runs + quantile(LEVEL, df) * math.hypot(error * runs, estimate.se or 0.0)
    if carried < abs(estimate.mean):
        return []
    values = {"point": point.load.label, "effect_percent": f"{(estimate.ratio - 1) * 100:+.1f}"}
    values["percent"] = f"{math.expm1(carried) * 100:.1f}"
    return [Finding(code="abtest.drift-explains", effect="warn", values={**values})]
