"""The course of a plan: waves of stages, so that a part of the replicas is changed as a whole before the next part.

A stage is one service in one wave: its instances are taken away together and boot side by side. Stages of a wave follow
what needs what. A service that changes, and one that another one of the plan needs, is in the first waves; what nothing
needs (a router) in the last ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from policies.facts import UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet
from policies.plan import RestartStep, Rolling, Step
from policies.planning.availability import all_away
from policies.planning.turns import Changing, Turn, some, turn


@dataclass(frozen=True, slots=True)
class Stage:
    """Instances (service@host) of one service that are restarted together, in one wave."""

    wave: int
    instances: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Course:
    """Stages in the order of their doing, and in the order of their undoing."""

    do: tuple[Stage, ...]
    undo: tuple[Stage, ...]
    rolling: tuple[Rolling, ...]
    warnings: tuple[Finding, ...] = ()


def course(fleet: Fleet, instances: Sequence[str], about: Changing) -> Course | list[Finding]:
    """The waves of these instances, or every reason why there are none."""
    by_service: dict[str, list[str]] = {}
    for instance in instances:
        by_service.setdefault(instance.split("@")[0], []).append(instance)
    found = [turn(fleet, service, mine, about) for service, mine in by_service.items()]
    if refusals := [one for one in found if isinstance(one, Finding)]:
        return refusals
    turns = [one for one in found if isinstance(one, Turn)]
    most = max((len(one.batches) for one in turns), default=0)
    front = {one.service for one in turns if one.changes or _needed(fleet, one.service, by_service)}
    do: list[Stage] = []
    for wave in range(1, most + 1):
        for one in turns:
            at = wave - 1 if one.service in front else wave - 1 - (most - len(one.batches))
            if 0 <= at < len(one.batches):
                do.append(Stage(wave, one.batches[at]))
    undo = [
        Stage(wave, one.batches[wave - 1])  # the last wave first; what nothing needs in the last ones, as it was
        for wave in range(most, 0, -1)
        for one in turns
        if wave <= len(one.batches)
    ]
    rolling = tuple(one.rolling for one in turns if one.rolling is not None)
    return Course(tuple(do), tuple(undo), rolling, tuple(_away(rolling, about.away or {})))


def _needed(fleet: Fleet, service: str, services: Iterable[str]) -> bool:
    """Whether another one of these services needs it, directly or through others."""
    return any(service in _needs(fleet, other) for other in services if other != service)


def _needs(fleet: Fleet, service: str) -> set[str]:
    """Every service that one needs, directly or through others."""
    found: set[str] = set()
    waiting = list(fleet.services[service].needs)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += fleet.services[name].needs
    return found


def _away(rolling: Iterable[Rolling], away: Mapping[str, str]) -> Iterable[Finding]:
    for one in rolling:
        out = [f"{i}: {why}" for i, why in away.items() if i.split("@")[0] == one.service]
        if out:
            values: dict[str, str | int | float | None] = {"service": one.service, "n": len(out), "away": some(out)}
            yield Finding(code="plan.away-now", effect="warn", values=values)


def unrolled(courses: Mapping[str, Course | list[Finding]]) -> tuple[Finding, ...]:
    """Why no order can be taken in turn, each reason once."""
    found: list[Finding] = []
    for way in courses.values():
        found += [f for f in (() if isinstance(way, Course) else way) if f not in found]
    return tuple(found)


def not_offered(courses: Mapping[str, Course | list[Finding]]) -> tuple[Finding, ...]:
    """Orders that fall away where another one is offered, and which service's floor is why."""
    return tuple(
        Finding(code="plan.order-not-offered", effect="warn", values={"order": order, **refusal.values})
        for order, way in courses.items()
        for refusal in (() if isinstance(way, Course) else way)
    )


def restarted(
    fleet: Fleet, order: str, aimed: Sequence[str], settled: Sequence[str], facts: Mapping[str, UnitFacts]
) -> tuple[str, ...]:
    """service@host of what a restart order restarts for a change of `aimed` instances.

    Of a service in which something changes, only these. Of its replicas those that have the value already (`settled`)
    and are in service are left alone, unless the order restarts something that they need.
    """
    services = {i.split("@")[0] for i in aimed}
    chosen: list[str] = []
    for service in fleet.restarts[order]:
        mine = fleet.instances(service)
        if service in services:
            mine = tuple(i for i in mine if i in aimed)
            if len(fleet.instances(service)) > 1 and not _needs(fleet, service) & {i.split("@")[0] for i in chosen}:
                left = set(settled) - all_away(settled, facts).keys()
                mine = tuple(i for i in mine if i not in left)
        chosen += mine
    return tuple(chosen)


def stages_of(steps: Sequence[Step]) -> tuple[Stage, ...]:
    """The stages of a plan's restarts, in order."""
    restarts = (step for step in steps if isinstance(step, RestartStep))
    return tuple(
        Stage(wave, tuple(f"{service}@{step.host}" for step in together))
        for (wave, service), together in groupby(restarts, key=lambda step: (step.wave, step.service))
    )
