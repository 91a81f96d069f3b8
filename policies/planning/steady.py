"""The life that a plan counts on: whose end would make it another plan."""

from __future__ import annotations

from policies.facts import Incarnation, UnitFacts
from policies.gates.incarnation import CRASH_LOOP
from policies.gates.port import taken

NO_LIFE = Incarnation(main_pid=0, started=0, invocation_id="")


def steady(unit: UnitFacts) -> Incarnation:
    """The incarnation that runs; all zero where there is none to lose.

    A unit without a process, and one that systemd starts again and again without it ever being well, gets a new
    invocation every few seconds: a plan to repair it must not depend on which one it was.
    """
    return NO_LIFE if unit.incarnation.main_pid == 0 or crash_looping(unit) else unit.incarnation


def crash_looping(unit: UnitFacts) -> bool:
    """Started again by systemd as often as a gate calls a crash loop, and not well now.

    A 200 from somebody else at the unit's port is not the unit's.
    """
    health = next((answer.status for answer in unit.http if answer.id == "health"), None)
    well = health == 200 and not taken(unit.port)
    return unit.n_restarts is not None and unit.n_restarts >= CRASH_LOOP and not well
