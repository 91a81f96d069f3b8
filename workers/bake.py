"""The bake watch: after the last gate, look again and again until the time is over or something speaks against it."""

from __future__ import annotations

import time
from collections.abc import Callable

from policies import events as e
from policies.bake import judge, measured, reading
from policies.errors import HostAnswerLost, HostUnreachable
from policies.finding import Finding
from policies.plan import Plan
from workers.hosts import Hosts

MOST_PAUSE_S = 5.0
LOOKS = 4  # at least so many in a short watch


def begin(hosts: Hosts, plan: Plan, until: float) -> e.BakeStarted:
    """The readings that later ones are compared with. until: epoch seconds of our clock.

    Raises: HostUnreachable, HostAnswerLost.
    """
    units = hosts.observe(plan.services, []).units
    return e.BakeStarted(until=until, readings={name: reading(unit) for name, unit in units.items()})


def watch(
    hosts: Hosts,
    plan: Plan,
    started: e.BakeStarted,
    clock: Callable[[], float],
    check: Callable[[], bool],
) -> e.Baked | tuple[Finding, ...]:
    """Watch until `started.until`: the event that ends it well, or what speaks against the change.

    `check` is asked before every look: False ends the watch without a verdict (as if nothing spoke against it yet).
    A host that cannot be asked is asked again; when the last look failed, that is said and is no pass.
    """
    pause_s = min(MOST_PAUSE_S, max(0.05, (started.until - clock()) / LOOKS))
    missed: Finding | None = None
    while True:
        if not check():
            return ()
        try:
            units = hosts.observe(plan.services, []).units
        except (HostUnreachable, HostAnswerLost) as error:
            values: dict[str, str | int | float | None] = {"error": error.message}
            missed = Finding(code="bake.not-observed", effect="refuse", values=values)
        else:
            missed = None
            bad = judge(started.readings, {name: reading(unit) for name, unit in units.items()})
            if bad:
                return bad
        left_s = started.until - clock()
        if left_s <= 0:
            return (missed,) if missed is not None else e.Baked(findings=measured(started.readings))
        time.sleep(min(pause_s, left_s))
