"""The reaper: the tick of every worker, narrator and bot. It rings for work that is recorded and that nobody does.

A lost bell, a killed worker and a restarted Redis all look the same from here: an open change without a live lease.
"""

from __future__ import annotations

import redis

from policies.change import WORKING, Change
from policies.line import Place, places
from workers.lease import Leases
from workers.ledger import Ledger
from workers.line import is_due, open_changes
from workers.queue import Doorbell
from workers.store import translated

LOCK = "clawback:sweep"
LOCK_MS = 800  # shorter than a tick, so that every second has its sweep, made by one process
PATIENCE_S = 5.0  # a change just asked for has its own bell


def sweep(ledger: Ledger, leases: Leases, doorbell: Doorbell, now: float) -> list[tuple[str, str, str]]:
    """Ring for what is due at `now` (epoch seconds). Gives (queue, name, change) of each bell; empty too when another
    process has just swept. A change that cannot be read is left to `audit verify`; the others are still looked at.

    Raises: StoreUnavailable when Redis cannot be reached.
    """
    if not _mine(ledger.redis):
        return []
    overdue = set(ledger.overdue(now))
    changes = open_changes(ledger)
    line = places(changes, now, 0.0)  # how long it takes is no matter here
    rung = []
    for change in changes:
        bell = _bell(change, leases, overdue, now, line.get(change.id))
        if bell is not None:
            doorbell.ring(*bell)
            rung.append(bell)
    return rung


def _bell(
    change: Change, leases: Leases, overdue: set[str], now: float, place: Place | None
) -> tuple[str, str, str] | None:
    if change.state == "asked":
        return ("ask", "prepare", change.id) if now - change.asked_at > PATIENCE_S else None
    if change.state == "planned":
        return ("ask", "expire", change.id) if change.id in overdue else None
    if place is not None and place.position > 1:
        return ("ask", "line", change.id) if is_due(change, place, now) else None
    if change.state in WORKING and change.plan is not None:
        leases.give_up_dead(change.plan.leased)
        held = any(leases.holder(instance) for instance in change.plan.leased)
        return None if held else ("act", "execute", change.id)
    return None


def _mine(client: redis.Redis) -> bool:
    with translated():
        return bool(client.set(LOCK, "1", nx=True, px=LOCK_MS))
