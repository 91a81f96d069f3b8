"""Taking an instance out at its routers before its restart and giving it back after it, as the fleet file declares."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from urllib.parse import urlsplit

from policies.facts import UnitFacts
from policies.fleet import Fleet
from policies.plan import AdmitStep, DrainStep, Registration


def registrations(fleet: Fleet, instance: str) -> tuple[Registration, ...]:
    """How each instance of the router of a service knows this one; empty where the service is not drained."""
    service = fleet.at(instance)
    if service.drain is None:
        return ()
    drain = service.drain
    return tuple(
        Registration(
            router=router,
            api=_api(fleet, router),
            worker=drain.worker,
            kind=drain.kind,
            bootstrap_port=drain.bootstrap_port,
        )
        for router in fleet.instances(drain.router)
    )


def _api(fleet: Fleet, router: str) -> str:
    """Where a router is asked from its own host: the server of its health url."""
    parts = urlsplit(fleet.at(router).health.url)
    return f"{parts.scheme}://{parts.netloc}"


def drains(fleet: Fleet, units: Sequence[UnitFacts]) -> list[DrainStep]:
    """One for each unit whose service is drained."""
    found: list[DrainStep] = []
    for unit in units:
        drain = fleet.services[unit.service].drain
        at = registrations(fleet, _name(unit))
        if drain is not None and at:
            name = {"host": unit.host, "service": unit.service, "unit": unit.unit}
            found.append(DrainStep(**name, at=at, deadline_s=drain.deadline_s, over=drain.over))
    return found


def admits(fleet: Fleet, units: Sequence[UnitFacts], routers: Collection[str] | None = None) -> list[AdmitStep]:
    """One for each unit whose service is drained. routers: those that are asked; None: all."""
    found: list[AdmitStep] = []
    for unit in units:
        every = registrations(fleet, _name(unit))
        at = tuple(one for one in every if routers is None or one.router in routers)
        if at:
            found.append(AdmitStep(host=unit.host, service=unit.service, unit=unit.unit, at=at))
    return found


def _name(unit: UnitFacts) -> str:
    return f"{unit.service}@{unit.host}"
