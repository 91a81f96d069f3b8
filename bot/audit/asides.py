"""How what is recorded beside changes has to look: one function a kind of subject, by its prefix.

Where it is shown is told by pointers, named after the subject, or after the subject and a place: `ab-17_C0PERF`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bot.asides import card_of
from bot.cards.answers import told
from bot.cards.changed import drift_lines, outside_line
from bot.cards.kit import Card
from bot.cards.locks import confirmed_line, lock_line
from bot.cards.silences import silence_line
from bot.cards.statement import dispute_line
from bot.cards.suspicion import reminder_card
from policies.events import Confirmed, DriftSeen, Entry, Locked, OutsideSeen, StatementDisputed, StatementJudgedAgain
from workers.client import Client
from workers.statements import Told


class Look(NamedTuple):
    """lines: ledger place -> how its message may look. card: the one that is edited; None: there is none."""

    lines: Mapping[int, tuple[Card, ...]]
    card: Callable[[], Card] | None = None


def _suspicion(door: Client, entries: Sequence[Entry]) -> Look:
    kept = door.suspicion(entries[0].subject)
    cards = () if kept is None else (reminder_card(kept),)
    return Look({entry.seq: cards for entry in entries})


def _silences(_: Client, entries: Sequence[Entry]) -> Look:
    return Look({entry.seq: (told(silence_line(entry)),) for entry in entries})


def _statement(door: Client, entries: Sequence[Entry]) -> Look:
    found = Told.of(tuple(entries))
    if found is None:
        return Look({entry.seq: () for entry in entries})
    lines = {
        entry.seq: (Card(dispute_line(entry.subject, entry.event, entry.at)),)
        for entry in entries
        if isinstance(entry.event, StatementDisputed | StatementJudgedAgain)
    }
    return Look(lines, lambda: card_of(door, found))


def _drift(_: Client, entries: Sequence[Entry]) -> Look:
    events = {entry.seq: entry.event for entry in entries}
    return Look({seq: (told(*drift_lines(x)),) for seq, x in events.items() if isinstance(x, DriftSeen)})


def _outside(_: Client, entries: Sequence[Entry]) -> Look:
    event = entries[0].event
    return Look({}, (lambda: told(outside_line(event))) if isinstance(event, OutsideSeen) else None)


def _record(_: Client, __: Sequence[Entry]) -> Look:
    """A record is shown with its age of then: it is held against what was posted."""
    return Look({})


def _lock(_: Client, entries: Sequence[Entry]) -> Look:
    first = entries[0].event
    if not isinstance(first, Locked):
        return Look({})
    return Look({entry.seq: (told(lock_line(entry.subject, first, entry.event)),) for entry in entries})


def _confirmed(_: Client, entries: Sequence[Entry]) -> Look:
    return Look(
        {
            entry.seq: (told(confirmed_line(entry.subject, entry.event)),)
            for entry in entries
            if isinstance(entry.event, Confirmed)
        }
    )


KINDS: Mapping[str, Callable[[Client, Sequence[Entry]], Look]] = {
    "ab": _record,
    "dr": _drift,
    "lk": _lock,
    "out": _outside,
    "rl": _confirmed,
    "si": _silences,
    "st": _statement,
    "su": _suspicion,
}


def subject_of(name: str) -> str:
    """The subject of the ledger that a pointer is about."""
    return name.partition("_")[0]


def look_of(door: Client, entries: Sequence[Entry]) -> Look:
    """How these entries of one subject look; a kind that is not known here is held against what was posted alone."""
    kind = KINDS.get(entries[0].subject.partition("-")[0])
    return kind(door, entries) if kind is not None else Look({entry.seq: () for entry in entries})
