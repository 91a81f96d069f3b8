"""The line as the ledger tells it: who waits for whom, recorded each time that a place changes."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from policies import events as e
from policies.approvals import still_valid
from policies.change import Change, IllegalTransition
from policies.errors import LedgerConflict, NotFound, StoreUnavailable
from policies.finding import Finding
from policies.line import BEGUN, Place, places, would_wait
from policies.plan import Plan
from workers.ledger import Ledger
from workers.store import translated

if TYPE_CHECKING:
    from workers.wiring import Wiring


def in_line(ledger: Ledger, watch_s: float, now: float) -> dict[str, Place]:
    """The place of every approved change. Units: epoch seconds. Raises: StoreUnavailable."""
    return places(open_changes(ledger), now, watch_s)


def open_changes(ledger: Ledger) -> list[Change]:
    """Every change that has not ended, oldest first. One that cannot be read is left to `audit verify`.

    Raises: StoreUnavailable when Redis cannot be reached.
    """
    found = []
    for name in ledger.open_changes():
        try:
            found.append(ledger.load(name))
        except NotFound:
            continue
        except StoreUnavailable:
            with translated():
                ledger.redis.ping()  # Redis is there: this entry is broken, and load says so to whoever needs it
    return found


def line(wiring: Wiring, change_id: str) -> None:
    """The job `line`: record the place of a change that waits, or its end; whoever may begin is left to `execute`."""
    change = wiring.ledger.load(change_id)
    if change.state == "approved":
        waits(wiring, change)


def waits(wiring: Wiring, change: Change) -> bool:
    """Whether others come first; its place is recorded when it is a new one. Or it ends here: nothing was begun.

    Raises: StoreUnavailable.
    """
    gone = _gone(wiring, change)
    place = in_line(wiring.ledger, wiring.fleet.timing.bake_s, wiring.clock()).get(change.id)
    if place is None or place.position == 1:
        return False  # whoever goes on ends it, if it has to
    event = gone or _queued(place)
    if gone is None and told(change, place):
        return True
    with suppress(LedgerConflict, IllegalTransition):  # a click came first, or another worker: looked at again
        wiring.ledger.append(change.id, event, expect_version=change.version)
    wiring.doorbell.ring("narrate", "draw", change.id)
    return True


def told(change: Change, place: Place) -> bool:
    """Whether this place is what was recorded last."""
    last = change.queued
    return last is not None and (last.position, last.held) == (place.position, place.held)


def is_due(change: Change, place: Place, now: float) -> bool:
    """Whether a change that waits has to be looked at: its place is a new one, or it waits no longer."""
    over = change.planned is not None and now >= change.planned.expires_at
    return not told(change, place) or change.abort is not None or over


def ahead_of(wiring: Wiring, plans: tuple[Plan, ...], change_id: str) -> tuple[Plan, ...]:
    """The plans, each with a note of the changes that it would wait for if it were approved now."""
    changes = open_changes(wiring.ledger)
    if not any(change.state in BEGUN | {"approved"} for change in changes if change.id != change_id):
        return plans
    return tuple(
        _noted(plan, would_wait(plan, change_id, changes, wiring.clock(), wiring.fleet.timing.bake_s)) for plan in plans
    )


def _noted(plan: Plan, place: Place) -> Plan:
    if place.position == 1:
        return plan
    code = "queue.would-wait-held" if place.held else "queue.would-wait" if place.eta is None else "queue.would-wait-s"
    values: dict[str, str | int | float | None] = {"behind": ", ".join(place.behind), "on": ", ".join(place.on)}
    values |= {"position": place.position, "held": place.held}
    if place.eta is not None:
        values |= {"left_s": place.eta.left_s, "n": place.eta.n}
    finding = Finding(code=code, effect="note", values=values)
    return plan.model_copy(update={"warnings": (finding, *plan.warnings)})


def _gone(wiring: Wiring, change: Change) -> e.Event | None:
    """How a change that waits ends without its turn: somebody aborts it, or its approval is over."""
    if change.abort is not None:
        values: dict[str, str | int | float | None] = {"actor": change.abort.id}
        return e.Aborted(findings=(Finding(code="aborted.before-start", effect="note", values=values),))
    lapsed = still_valid(change, wiring.fleet, wiring.clock())
    return e.Refused(findings=(lapsed,)) if lapsed is not None else None


def _queued(place: Place) -> e.Queued:
    return e.Queued(
        position=place.position,
        behind=place.behind,
        on=place.on,
        held=place.held,
        left_s=place.eta.left_s if place.eta is not None else None,
        n=place.eta.n if place.eta is not None else None,
    )
