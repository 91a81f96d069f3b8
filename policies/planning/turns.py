"""How the replicas of one service are taken in turn: the first one alone, then so many at once as the floor allows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from policies.finding import Finding
from policies.fleet import Fleet, RollingEntry
from policies.plan import CanaryWatch, Rolling

MOST_NAMED = 4
PLAIN = "the first in the fleet file that is in service and runs what its files say"
ODD = "the first in the fleet file that is in service; of none is it read that it runs what its files say"
AWAY = "out of service already, so that taking it away costs nothing; of the others none may be away now"
ALL_AWAY = "the first in the fleet file; all that change are out of service already"


@dataclass(frozen=True, slots=True)
class Changing:
    """What is known of the instances (service@host) of a plan.

    changed: those that get another value or version, or have it already and are restarted with it. settled: of these,
    those that have it. odd: those that do not run what their files say. away: those out of service, and why.
    together: the contract by which old and new must never run side by side.
    """

    changed: Collection[str] = ()
    settled: Collection[str] = ()
    odd: Collection[str] = ()
    away: Mapping[str, str] | None = None
    together: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One service: its instances in batches, each of which is taken away as a whole. rolling None: there is only one.

    changes: something changes in it.
    """

    service: str
    batches: tuple[tuple[str, ...], ...]
    rolling: Rolling | None
    changes: bool


def floor_of(rolling: RollingEntry, replicas: int) -> int:
    """How many replicas must be in service at every moment."""
    return max(0, replicas - rolling.max_unavailable) if rolling.keep is None else rolling.keep


def turn(fleet: Fleet, service: str, instances: Sequence[str], about: Changing) -> Turn | Finding:
    """The batches of the instances of one service, or why they cannot be taken in turn.

    Replicas that are not in the plan are taken to be in service, where nobody saw that they are not.
    """
    everywhere = fleet.instances(service)
    changes = any(i in about.changed for i in instances)
    if len(everywhere) == 1:
        return Turn(service, (tuple(instances),), None, changes)
    rolling = fleet.services[service].rolling
    keep = floor_of(rolling, len(everywhere))
    if about.together is not None and changes:
        return _at_once(service, instances, rolling, len(everywhere), about.together)
    most = min(rolling.max_unavailable, len(everywhere) - keep)
    if most < 1:
        values: dict[str, str | int | float | None] = {"service": service, "keep": keep, "replicas": len(everywhere)}
        return Finding(code="plan.floor-never-holds", effect="refuse", values=values)
    gone = about.away or {}
    serving = {i for i in everywhere if i not in gone}
    canary = None
    if changes and len(instances) > 1:
        canary = _canary(instances, about, room=len(serving) > keep)
        if canary is None:
            return _broken(service, keep, len(everywhere), len(serving), gone)
    batches: list[tuple[str, ...]] = []
    left = sorted(instances, key=lambda i: i not in gone)  # those first that cost nothing and come back
    if canary is not None:
        batches.append((canary[0],))
        left.remove(canary[0])
        serving.add(canary[0])
    while left:
        batch = _batch(left, serving, keep, most)
        if not batch:
            return _broken(service, keep, len(everywhere), len(serving), gone)
        batches.append(batch)
        left = [i for i in left if i not in batch]
        serving.update(batch)
    watch = None
    if canary is not None:
        watch = CanaryWatch(instance=canary[0], why=canary[1], watch_s=rolling.watch_s, require=rolling.require)
    found = Rolling(service=service, replicas=len(everywhere), max_unavailable=most, keep=keep, canary=watch)
    return Turn(service, tuple(batches), found, changes)


def _at_once(
    service: str, instances: Sequence[str], rolling: RollingEntry, replicas: int, contract: str
) -> Turn | Finding:
    """All of them in one wave. A floor that the fleet file names is never broken for that."""
    if rolling.keep:
        values: dict[str, str | int | float | None] = {"service": service, "keep": rolling.keep, "replicas": replicas}
        return Finding(code="contract.floor", effect="refuse", values=values | {"contract": contract})
    found = Rolling(service=service, replicas=replicas, max_unavailable=replicas, keep=0)
    return Turn(service, (tuple(instances),), found, changes=True)


def _batch(left: Sequence[str], serving: Collection[str], keep: int, most: int) -> tuple[str, ...]:
    """As many as may be away at once. What is out of service already costs nothing."""
    batch: list[str] = []
    room = len(serving) - keep
    for instance in left:
        costs = instance in serving
        if len(batch) < most and (not costs or room > 0):
            batch.append(instance)
            room -= costs
    return tuple(batch)


def _canary(instances: Sequence[str], about: Changing, *, room: bool) -> tuple[str, str] | None:
    """The instance that goes first and why it is that one; None where none may be taken away."""
    gone = about.away or {}
    fresh = [i for i in instances if i in about.changed and i not in about.settled]
    fresh = fresh or [i for i in instances if i in about.changed]
    well = [i for i in fresh if i not in gone]
    if room and well:
        plain = [i for i in well if i not in about.odd]
        return (plain[0], PLAIN) if plain else (well[0], ODD)
    out = [i for i in fresh if i in gone] or [i for i in instances if i in gone]
    if not out:
        return None
    return out[0], ALL_AWAY if not well else AWAY


def _broken(service: str, keep: int, replicas: int, serving: int, gone: Mapping[str, str]) -> Finding:
    """The floor would be broken now, and may hold later."""
    out = [i for i in gone if i.split("@")[0] == service]
    values: dict[str, str | int | float | None] = {"service": service, "keep": keep, "replicas": replicas}
    return Finding(code="plan.floor-broken", effect="refuse", values=values | {"serving": serving, "away": some(out)})


def some(names: Sequence[str]) -> str:
    """At most so many names, and how many more."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
