"""How what is recorded beside changes has to look in a thread: one function a kind of subject, by its prefix."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bot.cards.kit import Card
from bot.cards.suspicion import reminder_card
from policies.events import Entry
from workers.client import Client


class Look(NamedTuple):
    """lines: ledger place -> how its message may look. card: the one that is edited; None: there is none."""

    lines: Mapping[int, tuple[Card, ...]]
    card: Callable[[], Card] | None = None


def _suspicion(door: Client, entries: Sequence[Entry]) -> Look:
    kept = door.suspicion(entries[0].subject)
    cards = () if kept is None else (reminder_card(kept),)
    return Look({entry.seq: cards for entry in entries})


KINDS: Mapping[str, Callable[[Client, Sequence[Entry]], Look]] = {"su": _suspicion}


def look_of(door: Client, entries: Sequence[Entry]) -> Look:
    """How these entries of one subject look; a kind that is not known here is held against what was posted alone."""
    kind = KINDS.get(entries[0].subject.partition("-")[0])
    return kind(door, entries) if kind is not None else Look({entry.seq: () for entry in entries})
