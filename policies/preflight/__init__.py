"""What is wrong already, or cannot be proven, before anything is restarted: one file a kind of trouble.

Add one by copying `loaded.py` and naming its `check` in `CHECKS`; sentences go to `bot.messages.misbehaviour`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policies.facts import UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet
from policies.preflight import holders, loaded, managed, router, starting, state, wraps
from policies.preflight.look import Look

CHECKS = (holders.check, state.check, starting.check, wraps.check, managed.check, loaded.check, router.check)


def preflight(
    fleet: Fleet,
    instances: Sequence[str],
    facts: Mapping[str, UnitFacts],
    boots: Mapping[str, Sequence[float]],
    changed: Sequence[str] = (),
) -> tuple[Finding, ...]:
    """Warnings of every check about every instance.

    boots: recorded seconds from issue to healthy by instance, oldest first. changed: instances whose files change.
    """
    looks = [Look(fleet, i, facts[i], tuple(boots.get(i, ())), i in changed) for i in instances]
    return tuple(finding for look in looks for check in CHECKS for finding in check(look))


def refused(
    fleet: Fleet,
    instances: Sequence[str],
    facts: Mapping[str, UnitFacts],
    boots: Mapping[str, Sequence[float]],
) -> list[Finding]:
    """Restarts that would end as the last one did."""
    looks = [Look(fleet, i, facts[i], tuple(boots.get(i, ()))) for i in instances]
    return [finding for look in looks for finding in starting.refuse(look)]
