"""Two arms of runs, cut into load points. At a point every run has the same load."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from policies.bench.metrics import Better
from policies.bench.run import Load, Run

ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5}
POSITION = re.compile(
    r"\b(?P<which>first|second|third|fourth|fifth|[0-9]{1,3}(st|nd|rd|th))\s+\w+\s+(after|since)\b[^;,]*\b(re)?start",
    re.IGNORECASE,
)
COLD = re.compile(r"\bcold\b", re.IGNORECASE)
SLOW_STARTS = 2.0  # mean TTFT over its median: a few requests waited very long
EVEN_STARTS = 1.5
CLIMB = 0.10  # run 1 to run 2, beyond what repeats differ by
Values = dict[str, str | int | float | None]


@dataclass(frozen=True, slots=True)
class Point:
    """The runs of both arms at one load, in the order they were given. `dropped` were left out by the rule."""

    load: Load
    a: tuple[Run, ...]
    b: tuple[Run, ...]
    dropped: tuple[Run, ...] = ()

    @property
    def n(self) -> int:
        """Runs of the smaller arm."""
        return min(len(self.a), len(self.b))

    @property
    def arms(self) -> tuple[tuple[str, tuple[Run, ...]], ...]:
        """Both arms by name."""
        return ("A", self.a), ("B", self.b)

    @property
    def given(self) -> tuple[tuple[str, tuple[Run, ...]], ...]:
        """Both arms with the runs that were left out."""
        return ("A", (*self.dropped[:1], *self.a)), ("B", (*self.dropped[1:], *self.b))


def points(a: Sequence[Run], b: Sequence[Run]) -> tuple[tuple[Point, ...], tuple[Run, ...]]:
    """Points that both arms have, by load; and one run for each load that only one arm has."""
    by_a, by_b = _by_load(a), _by_load(b)
    common = [Point(load, tuple(by_a[load]), tuple(by_b[load])) for load in by_a if load in by_b]
    alone = [runs[0] for load, runs in by_a.items() if load not in by_b]
    alone += [runs[0] for load, runs in by_b.items() if load not in by_a]
    return tuple(sorted(common, key=lambda p: weight(p.load))), tuple(alone)


def weight(load: Load) -> tuple[float, float]:
    """Loads in the order of a sweep."""
    rate = load.request_rate
    return float(load.concurrency or 0), 0.0 if rate is None else float("inf") if rate == "inf" else rate


def without_first(point: Point, metric: str, better: Better) -> Point:
    """The point without the first run of each arm, where the first of either arm shows that it was cold.

    A rule and no choice: both arms lose their first run, whichever of them was cold. One run an arm has to stay.
    """
    if point.n < 2 or not any(cold_first(runs, metric, better) for _, runs in point.arms):
        return point
    return replace(point, a=point.a[1:], b=point.b[1:], dropped=(point.a[0], point.b[0]))


def cold_first(runs: Sequence[Run], metric: str, better: Better) -> bool:
    """Whether the first of several runs was cold: its tag, its first tokens, or a climb that repeats do not show."""
    first, rest = runs[0], runs[1:]
    if position(first) == 1 or (first.identity.tag and COLD.search(first.identity.tag)):
        return True
    slow = slow_starts([first])
    others = slow_starts(rest)
    if slow is not None and others is not None and slow >= SLOW_STARTS and others < EVEN_STARTS:
        return True
    change = climb(first, rest[0], metric)
    values = [run.metrics[metric].value for run in rest if metric in run.metrics]
    if change is None or not values:
        return False
    worst = min(values) if better == "higher" else max(values)
    behind = worst / first.metrics[metric].value - 1
    return min(change, behind) >= CLIMB if better == "higher" else max(change, behind) <= -CLIMB / (1 + CLIMB)


def climb(first: Run, second: Run, metric: str) -> float | None:
    """The change from one run to the next as a fraction; None where the metric is missing or 0."""
    if metric not in first.metrics or metric not in second.metrics or first.metrics[metric].value == 0:
        return None
    return second.metrics[metric].value / first.metrics[metric].value - 1


def position(run: Run) -> int | None:
    """How many runs there were since the server's start, as the tag says: `third run after restart` is 3."""
    found = POSITION.search(run.identity.tag or "")
    if found is None:
        return None
    which = found["which"].lower()
    return ORDINALS.get(which) or int(re.sub(r"\D", "", which))


def slow_starts(runs: Iterable[Run]) -> float | None:
    """Mean time to first token over its median, the median of the runs; None where a run does not tell both."""
    ratios = []
    for run in runs:
        mean, middle = run.metrics.get("mean_ttft_ms"), run.metrics.get("median_ttft_ms")
        if mean is None or middle is None or middle.value == 0:
            return None
        ratios.append(mean.value / middle.value)
    return median(ratios) if ratios else None


def _by_load(runs: Sequence[Run]) -> dict[Load, list[Run]]:
    found: dict[Load, list[Run]] = {}
    for run in runs:
        found.setdefault(run.load, []).append(run)
    return found
