"""What is wrong already, or cannot be proven, before anything is restarted: one file a kind of trouble.

Add one by copying `loaded.py` and naming its `check` in `CHECKS`; sentences go to `bot.messages.misbehaviour`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policies.facts import UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet
from policies.preflight import holders, loaded, managed, router, starting, state, working, wraps
from policies.preflight.look import Look
from policies.states.state import State

CHECKS = (
    holders.check,
    state.check,
    starting.check,
    wraps.check,
    managed.check,
    loaded.check,
    router.check,
    working.check,
)

REFUSALS = (starting.refuse, working.refuse)


def preflight(
    fleet: Fleet,
    instances: Sequence[str],
    facts: Mapping[str, UnitFacts],
    boots: Mapping[str, Sequence[float]],
    changed: Sequence[str] = (),
    states: Mapping[str, State] | None = None,
    anyway: str | None = None,
    *,
    reset: bool = False,
) -> tuple[Finding, ...]:
    """Warnings of every check about every instance.

    boots: recorded seconds from issue to healthy by instance, oldest first. changed: instances whose files change.
    states: what engines do, of those that were looked at. anyway: who asked for it whatever they do. reset: the
    restart is for a value or a version, so that it is not asked for because something looks dead.
    """
    found = states or {}
    looks = [
        Look(fleet, i, facts[i], tuple(boots.get(i, ())), i in changed, found.get(i), anyway, reset) for i in instances
    ]
    return tuple(finding for look in looks for check in CHECKS for finding in check(look))


def refused(
    fleet: Fleet,
    instances: Sequence[str],
    facts: Mapping[str, UnitFacts],
    boots: Mapping[str, Sequence[float]],
    states: Mapping[str, State] | None = None,
    anyway: str | None = None,
) -> list[Finding]:
    """Restarts that would end as the last one did, and those of engines that work."""
    found = states or {}
    looks = [Look(fleet, i, facts[i], tuple(boots.get(i, ())), False, found.get(i), anyway) for i in instances]
    return [finding for look in looks for refuse in REFUSALS for finding in refuse(look)]
