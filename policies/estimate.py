"""How long a restart order takes, from recorded restarts only: none recorded, none told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from policies.plan import Estimate


def estimate(stages: Sequence[Sequence[str]], boots: Mapping[str, Sequence[float]]) -> Estimate | None:
    """Seconds for a whole order: of each stage its longest median (and p90) from issue to healthy, stages added.

    stages: instances (service@host) that boot side by side. boots: seconds by instance. None as soon as one instance
    has no record. n is the smallest count.
    """
    records = {i: sorted(boots.get(i, ())) for stage in stages for i in stage}
    if not records or any(not r for r in records.values()):
        return None
    medians = {i: median(r) for i, r in records.items()}
    # Nearest-rank p90: with few records it is the slowest one seen, which is what a person wants to know.
    p90 = {i: r[-(-9 * len(r) // 10) - 1] for i, r in records.items()}
    return Estimate(
        median_s=sum(max(medians[i] for i in stage) for stage in stages),
        p90_s=sum(max(p90[i] for i in stage) for stage in stages),
        n=min(len(r) for r in records.values()),
        medians=tuple(medians.items()),
    )
