"""The ledger as the comparison needs it: every readable entry by its place and by its change."""

from __future__ import annotations

from collections import defaultdict

from bot.audit.asides import subject_of
from policies.events import Asked, Entry, tells_change
from workers.audit import Copies


class Book:
    """Read once, and then only what was appended since. Raises: StoreUnavailable."""

    def __init__(self, copies: Copies) -> None:
        self._copies = copies
        self._entries: dict[int, Entry] = {}
        self._changes: dict[str, list[Entry]] = defaultdict(list)
        for entry in copies.entries():
            self._keep(entry)

    def catch_up(self) -> None:
        """What was recorded since."""
        for entry in self._copies.since(max(self._entries, default=0)):
            self._keep(entry)

    def known(self, seq: int) -> Entry | None:
        """The entry at this place."""
        return self._entries.get(seq)

    def of(self, change: str) -> tuple[Entry, ...]:
        """The entries of a change."""
        return tuple(self._changes.get(change, ()))

    def asked(self) -> dict[str, tuple[Asked, float]]:
        """Changes that were asked for in a channel, oldest first: how, and when in epoch seconds."""
        firsts = {name: entries[0] for name, entries in self._changes.items()}
        return {
            name: (first.event, first.at)
            for name, first in firsts.items()
            if isinstance(first.event, Asked) and first.event.where.channel
        }

    def is_change(self, subject: str) -> bool:
        """Whether the subject is a change, and not told beside changes."""
        entries = self._changes.get(subject)
        return entries is not None and tells_change(entries[0].event.kind)

    def is_placed(self, subject: str) -> bool:
        """Whether it is known where the subject is told, or must be: a change is told in one thread."""
        return self.is_change(subject) or any(subject_of(name) == subject for name in self._copies.drawn.names())

    def _keep(self, entry: Entry) -> None:
        self._entries[entry.seq] = entry
        self._changes[entry.subject].append(entry)
