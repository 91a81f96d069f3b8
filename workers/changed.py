"""What changed: changes, and what the watch found outside of them; for everything or for one knob."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from policies import events as e
from policies.change import Change
from policies.fleet import Fleet
from policies.outside import Snapshot
from policies.tickets import ticket_key
from workers.ledger import Ledger
from workers.watch import Seen

MOST = 500


@dataclass(frozen=True, slots=True)
class Changed:
    """What changed since a moment, oldest first. seen: the last look at each instance; None: there was none yet.

    `more`: older changes than are given here began in that time too.
    """

    since: float
    changes: tuple[Change, ...]
    outside: tuple[e.Entry, ...]
    seen: Mapping[str, Snapshot | None]
    more: bool = False


def changed(ledger: Ledger, seen: Seen, since: float) -> Changed:
    """What began, worked or ended since that moment. Units: epoch seconds. Raises: StoreUnavailable."""
    asked = ledger.index("changes")
    open_ones = set(ledger.open_changes())
    kept: list[Change] = []
    for entry in reversed(asked):
        if len(kept) == MOST:
            break
        change = ledger.load(entry.subject)
        if entry.at >= since or change.id in open_ones or (change.ended_at or 0.0) >= since:
            kept.append(change)
        elif entry.at < since - LONGEST_S:
            break
    outside = [entry for entry in ledger.index("outside") if entry.at >= since]
    return Changed(since, tuple(reversed(kept)), tuple(outside), seen.all(), more=len(kept) == MOST)


def of_ticket(ledger: Ledger, ticket: str, since: float) -> tuple[Change, ...]:
    """The changes that name this ticket, asked for since that moment, oldest first. Raises: StoreUnavailable."""
    asked = [entry for entry in ledger.index(f"ticket:{ticket_key(ticket)}") if entry.at >= since]
    return tuple(ledger.load(entry.subject) for entry in asked[-MOST:])


LONGEST_S = 7 * 86_400.0  # a change that was asked for before then has ended or is open


def of_knob(ledger: Ledger, fleet: Fleet, knob: str) -> tuple[e.Entry, ...]:
    """Everything recorded about a knob, oldest first: ends of its changes, evidence, and what happened outside.

    Raises: StoreUnavailable.
    """
    instances = {i for name in fleet.knobs[knob].on for i in fleet.instances(name)} if knob in fleet.knobs else set()
    found: dict[int, e.Entry] = {entry.seq: entry for entry in ledger.index(f"evidence:{knob}")}
    for entry in ledger.index("changes"):
        intent = entry.event.intent if isinstance(entry.event, e.Asked) else None
        if intent is not None and getattr(intent, "knob", None) == knob:
            found[entry.seq] = entry
    for entry in ledger.index("outside"):
        if isinstance(entry.event, e.OutsideSeen) and entry.event.instance in instances:
            found[entry.seq] = entry
    return tuple(found[seq] for seq in sorted(found))
