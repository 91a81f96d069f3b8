"""The bake watch: after the last gate, look again and again until the time is over or something speaks against it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from policies import events as e
from policies.bake import judge, measured, reading
from policies.errors import HostAnswerLost, HostUnreachable
from policies.finding import Finding
from policies.plan import Plan
from workers.hosts import Hosts

MOST_PAUSE_S = 5.0
LOOKS = 4  # at least so many in a short watch


@dataclass(frozen=True, slots=True)
class Settled:
    """What a watch found. missed: its last look failed, so that nothing is known of its end."""

    against: tuple[Finding, ...] = ()
    missed: Finding | None = None


def look(hosts: Hosts, instances: Sequence[str]) -> dict[str, e.BakeReading]:
    """One look at each. Raises: HostUnreachable, HostAnswerLost."""
    return {name: reading(unit) for name, unit in hosts.observe(instances, []).units.items()}


def begin(hosts: Hosts, plan: Plan, until: float) -> e.BakeStarted:
    """The readings that later ones are compared with. until: epoch seconds of our clock.

    Raises: HostUnreachable, HostAnswerLost.
    """
    return e.BakeStarted(until=until, readings=look(hosts, plan.services))


def watch(
    hosts: Hosts,
    plan: Plan,
    started: e.BakeStarted,
    clock: Callable[[], float],
    check: Callable[[], bool],
) -> e.Baked | tuple[Finding, ...]:
    """Watch until `started.until`: the event that ends it well, or what speaks against the change.

    `check` is asked before every look: False ends the watch without a verdict (as if nothing spoke against it yet).
    """
    settled = settle(hosts, plan.services, started.readings, started.until, clock, check)
    if settled is None:
        return ()
    if settled.missed is not None:
        return (settled.missed,)
    return settled.against or e.Baked(findings=measured(started.readings))


def settle(
    hosts: Hosts,
    instances: Sequence[str],
    readings: Mapping[str, e.BakeReading],
    until: float,
    clock: Callable[[], float],
    check: Callable[[], bool],
) -> Settled | None:
    """Look again and again until the time is over or something speaks against the change.

    `check` is asked before every look: False ends the watch, None then. A host that cannot be asked is asked again;
    when the last look failed, that is said and is no pass. Units: until is epoch seconds of our clock.
    """
    pause_s = min(MOST_PAUSE_S, max(0.05, (until - clock()) / LOOKS))
    while True:
        if not check():
            return None
        missed: Finding | None = None
        try:
            bad = judge(readings, look(hosts, instances))
        except (HostUnreachable, HostAnswerLost) as error:
            values: dict[str, str | int | float | None] = {"error": error.message}
            missed = Finding(code="bake.not-observed", effect="refuse", values=values)
        else:
            if bad:
                return Settled(bad)
        left_s = until - clock()
        if left_s <= 0:
            return Settled(missed=missed)
        time.sleep(min(pause_s, left_s))
