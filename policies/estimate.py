"""How long a restart order takes, from recorded restarts only: none recorded, none told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median

from policies.plan import Estimate


def estimate(instances: Sequence[str], boots: Mapping[str, Sequence[float]]) -> Estimate | None:
    """Seconds for a whole order: the sum over its instances of their median (and p90) from issue to healthy.

    boots: seconds by instance (service@host). None as soon as one instance has no record. n is the smallest count.
    """
    records = [sorted(boots.get(i, ())) for i in instances]
    if not records or any(not r for r in records):
        return None
    # Nearest-rank p90: with few records it is the slowest one seen, which is what a person wants to know.
    p90 = sum(r[-(-9 * len(r) // 10) - 1] for r in records)
    medians = tuple((instance, median(r)) for instance, r in zip(instances, records, strict=True))
    return Estimate(
        median_s=sum(seconds for _, seconds in medians), p90_s=p90, n=min(len(r) for r in records), medians=medians
    )
