"""Asking the routers of a plan's drains, before it is shown, what the drains will meet there."""

from __future__ import annotations

from collections.abc import Iterable

from policies.errors import OpsError
from policies.finding import Finding
from policies.fleet import Fleet
from policies.plan import DrainStep, Plan, Registration
from policies.routers.foreseen import foreseen
from policies.routers.listed import Listed
from workers.hosts import Hosts
from workers.routers import Routers
from workers.trouble import about_host


def at_routers(fleet: Fleet, hosts: Hosts, plans: Iterable[Plan]) -> tuple[Finding, ...]:
    """Findings about all drains of these plans, each router asked once."""
    seen: dict[str, tuple[Listed, ...] | Finding] = {}
    found: list[Finding] = []
    for plan in plans:
        waves: dict[tuple[int, str], list[DrainStep]] = {}
        for step in (step for step in plan.steps if isinstance(step, DrainStep)):
            waves.setdefault((step.wave, step.service), []).append(step)
        for together in waves.values():
            for at in {one.router: one for step in together for one in step.at}.values():
                if at.router not in seen:
                    seen[at.router] = _listed(Routers(fleet, hosts), at)
                found += [one for one in foreseen(at, together, seen[at.router]) if one not in found]
    return tuple(found)


def _listed(routers: Routers, at: Registration) -> tuple[Listed, ...] | Finding:
    try:
        return routers.look(at).listed
    except OpsError as error:
        if not about_host(error):
            raise
        values: dict[str, str | int | float | None] = {"router": at.router, "error": error.message}
        return Finding(code="router.no-answer", effect="warn", values=values)
