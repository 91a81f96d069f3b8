"""Whether the replicas of a service are on one value now, and whether they will be after a plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from policies.finding import Finding
from policies.fleet import Fleet
from policies.planning.turns import some

MOST_VALUES = 5
Values = dict[str, str | int | float | None]


def mixed(
    fleet: Fleet, aimed: Sequence[str], touched: Sequence[str], now: Mapping[str, str], then: str
) -> Iterator[Finding]:
    """What is said of a service whose replicas differ, now or afterwards, and of those that are left alone.

    aimed: instances that are to have `then`. touched: those that the plan restarts. now: the value or version by
    instance, as far as it is known.
    """
    for service in dict.fromkeys(i.split("@")[0] for i in aimed):
        everywhere = fleet.instances(service)
        if len(everywhere) == 1:
            continue
        known = {i: now[i] for i in everywhere if i in now}
        if len(set(known.values())) > 1:
            values: Values = {"service": service, "found": spread(known)}
            yield Finding(code="plan.mixed", effect="warn", values=values)
        alone = [i for i in everywhere if i in aimed and i not in touched]
        if alone:
            values = {"instances": some(alone), "n": len(alone), "value": then}
            yield Finding(code="plan.left-alone", effect="note", values=values)
        after = {**known, **{i: then for i in everywhere if i in aimed}}
        if len(set(after.values())) > 1:
            values = {"service": service, "found": spread(after)}
            yield Finding(code="plan.mixed-after", effect="warn", values=values)


def spread(by_instance: Mapping[str, str]) -> str:
    """`v1 on decode@gpu1, decode@gpu2; v2 on decode@gpu3`."""
    found: dict[str, list[str]] = {}
    for instance, value in by_instance.items():
        found.setdefault(value, []).append(instance)
    told = [f"{value} on {some(where)}" for value, where in list(found.items())[:MOST_VALUES]]
    more = f"; and {len(found) - MOST_VALUES} more values" if len(found) > MOST_VALUES else ""
    return "; ".join(told) + more
