"""Draws what is recorded beside changes: statements with what is said against them, reminders of suspicions, and what
the watch found outside of changes, in the channel of the fleet file.

As the narrator does it for changes: in order, once, with the entry's place and hash in the metadata of each message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import structlog

from bot.cards.answers import told
from bot.cards.changed import drift_lines, outside_line
from bot.cards.kit import Card
from bot.cards.locks import confirmed_line, lock_line
from bot.cards.shown import digest
from bot.cards.silences import silence_line
from bot.cards.statement import dispute_line, statement_card
from bot.cards.suspicion import reminder_card
from bot.once import Once, Overtaken
from bot.posting import Poster
from bot.slack import SlackRefused, SlackUnclear
from policies.events import Confirmed, DriftSeen, Entry, Locked, OutsideSeen, StatementDisputed, StatementJudgedAgain
from policies.fleet import Fleet
from policies.suspicion import change_of, suspicion_id
from workers.drawn import DrawingLock, Drawn, Pointer
from workers.statements import Told
from workers.suspicions import Kept

log = structlog.get_logger(__name__)

BUSY_S = 0.3
SWEPT = 40


class Teller(Protocol):
    """What the message of a statement is drawn from, beside its own entries."""

    def suspicion(self, name: str) -> Kept | None:
        """A suspicion."""


class Door(Teller, Protocol):
    """What is needed of the workers' client."""

    fleet: Fleet

    def locked(self, count: int) -> list[Entry]:
        """The last entries about locks."""

    def drift(self, count: int) -> list[Entry]:
        """The last things that were not as they were left."""

    def outside(self, count: int) -> list[Entry]:
        """The last things that the watch found."""

    def entries(self, change_id: str) -> list[Entry]:
        """Every entry of a subject."""

    def asides(self, count: int) -> list[Entry]:
        """The last entries that are drawn beside changes."""

    def remind_of_suspicions(self) -> list[str]:
        """Record the reminders that are due."""


def card_of(door: Teller, told: Told) -> Card:
    """The message of a statement, with what it makes of the suspicion of the change that it is about."""
    about = told.statement.about
    return statement_card(told, door.suspicion(suspicion_id(about)) if about is not None else None)


class Asides:
    """`clock` gives epoch seconds; `ring` rings the job `draw` of a subject."""

    def __init__(
        self,
        door: Door,
        drawn: Drawn,
        poster: Poster,
        clock: Callable[[], float],
        ring: Callable[[str], object],
    ) -> None:
        self._door = door
        self._drawn = drawn
        self._poster = poster
        self._once = Once(drawn, poster)
        self._clock = clock
        self._ring = ring
        self._kinds: dict[str, Callable[[str, DrawingLock], None]] = {
            "lk": self._lock,
            "dr": self._drift,
            "out": self._outside,
            "rl": self._confirmed,
            "si": self._silences,
            "st": self._statement,
            "su": self._reminders,
        }

    def draw(self, subject: str) -> None:
        """Bring what is shown of one subject up to date.

        Raises: StoreUnavailable.
        """
        with self._drawn.lock(subject) as lock:
            if lock is None:
                self._drawn.later(subject, self._clock() + BUSY_S)
                return
            self._drawn.begun(subject, self._clock())
            try:
                self._kinds[subject.partition("-")[0]](subject, lock)
            except Overtaken:
                self._drawn.later(subject, self._clock() + BUSY_S)
            except (SlackRefused, SlackUnclear) as error:
                pause_s, failures = self._once.pause_s(subject, error)
                log.warning("drawing waits", subject=subject, error=error.message, pause_s=pause_s, failures=failures)
                self._drawn.later(subject, self._clock() + pause_s)
            self._drawn.finished(subject)

    def sweep(self) -> None:
        """Remind of the review dates that have come, and ring for everything beside changes that is not drawn."""
        for subject in self._door.remind_of_suspicions():
            self._ring(subject)
        for subject, seq in {entry.subject: entry.seq for entry in self._door.asides(SWEPT)}.items():
            pointer = self._drawn.get(subject) or self._place(subject)
            if pointer is not None and pointer.seq < seq:
                self._ring(subject)
        for subject, seq in {entry.subject: entry.seq for entry in self._door.locked(SWEPT)}.items():
            pointer = self._drawn.get(subject)
            if not subject.startswith("C-") and (pointer is None or pointer.seq < seq):
                self._ring(subject)
        newest = {entry.subject: entry.seq for entry in self._door.drift(SWEPT)} if self._door.fleet.channel else {}
        for subject, seq in newest.items():
            pointer = self._drawn.get(subject)
            if pointer is None or pointer.seq < seq:
                self._ring(subject)
        for entry in self._door.outside(SWEPT) if self._door.fleet.channel else ():
            if self._drawn.get(entry.subject) is None:
                self._ring(entry.subject)

    def _drift(self, subject: str, lock: DrawingLock) -> None:
        """What is not as it was left, a message each time in the channel of the fleet file."""
        channel = self._door.fleet.channel
        pointer = self._drawn.get(subject) or (Pointer(channel=channel) if channel is not None else None)
        for entry in self._door.entries(subject):
            if pointer is not None and entry.seq > pointer.seq and isinstance(entry.event, DriftSeen):
                pointer = self._line(entry, told(*drift_lines(entry.event)), pointer, entry.at, lock)

    def _outside(self, subject: str, lock: DrawingLock) -> None:
        channel = self._door.fleet.channel
        for entry in self._door.entries(subject):
            if channel is None or not isinstance(entry.event, OutsideSeen):
                continue
            pointer = self._drawn.get(subject) or Pointer(channel=channel)
            if entry.seq > pointer.seq:
                card = told(outside_line(entry.event))
                posted, pointer = self._once.post(entry, card, pointer, entry.at, lock)
                update = {"card_ts": posted.ts, "seq": entry.seq, "pending": None, "failures": 0}
                self._drawn.put(subject, pointer.model_copy(update=update))

    def _lock(self, subject: str, lock: DrawingLock) -> None:
        """A lock in the channel where it was put on, and below it that it was opened."""
        entries = self._door.entries(subject)
        first = entries[0].event if entries else None
        if not isinstance(first, Locked) or not first.where.channel:
            return
        pointer = self._drawn.get(subject) or Pointer(channel=first.where.channel, thread_ts=first.where.thread_ts)
        for entry in entries:
            if entry.seq > pointer.seq:
                card = told(lock_line(subject, first, entry.event))
                posted, pointer = self._once.post(entry, card, pointer, entries[0].at, lock)
                thread = {"thread_ts": pointer.thread_ts or posted.ts, "seq": entry.seq, "pending": None, "failures": 0}
                pointer = pointer.model_copy(update=thread)
                self._drawn.put(subject, pointer)

    def _confirmed(self, subject: str, lock: DrawingLock) -> None:
        """That the lock of a rollback was opened, in the rollback's thread."""
        pointer = self._drawn.get(subject) or self._place(subject)
        for entry in self._door.entries(subject) if pointer is not None else ():
            if pointer is not None and entry.seq > pointer.seq and isinstance(entry.event, Confirmed):
                pointer = self._line(entry, told(confirmed_line(subject, entry.event)), pointer, entry.at, lock)

    def _reminders(self, subject: str, lock: DrawingLock) -> None:
        kept = self._door.suspicion(subject)
        pointer = self._drawn.get(subject) or self._place(subject)
        if kept is None or pointer is None:
            return
        for entry in self._door.entries(subject):
            if entry.seq > pointer.seq:
                pointer = self._line(entry, reminder_card(kept), pointer, kept.suspicion.at, lock)

    def _silences(self, subject: str, lock: DrawingLock) -> None:
        """What becomes of the silences of a change, in its thread."""
        pointer = self._drawn.get(subject) or self._place(subject)
        for entry in self._door.entries(subject):
            if pointer is not None and entry.seq > pointer.seq:
                pointer = self._line(entry, told(silence_line(entry)), pointer, entry.at, lock)

    def _statement(self, subject: str, lock: DrawingLock) -> None:
        told = Told.of(self._door.entries(subject))
        pointer = self._drawn.get(subject) or self._place(subject)
        if told is None or pointer is None:
            return
        made_at = told.entries[0].at
        if pointer.card_ts is None:
            pointer = self._card(told, pointer, lock)
        for entry in told.entries[1:]:
            if entry.seq > pointer.seq and isinstance(entry.event, StatementDisputed | StatementJudgedAgain):
                said = Card(dispute_line(subject, entry.event, entry.at))
                pointer = self._line(entry, said, pointer, made_at, lock)
        card = card_of(self._door, told)
        if pointer.card_ts is not None and digest(card) != pointer.card:
            if lock.is_stale():
                raise Overtaken
            self._poster.update(pointer.channel, pointer.card_ts, card)
            self._drawn.put(subject, pointer.model_copy(update={"card": digest(card), "failures": 0}))

    def _card(self, told: Told, pointer: Pointer, lock: DrawingLock) -> Pointer:
        """Post the statement's message as it was made; what was said against it since is told by editing it."""
        first = told.entries[0]
        card = card_of(self._door, Told(told.statement, (first,)))
        posted, pointer = self._once.post(first, card, pointer, first.at, lock)
        update = {"card_ts": posted.ts, "thread_ts": posted.thread_ts or posted.ts, "card": digest(card)}
        pointer = pointer.model_copy(update={**update, "seq": first.seq, "pending": None, "failures": 0})
        self._drawn.put(told.statement.id, pointer)
        return pointer

    def _line(self, entry: Entry, card: Card, pointer: Pointer, since: float, lock: DrawingLock) -> Pointer:
        _, pointer = self._once.post(entry, card, pointer, since, lock)
        pointer = pointer.model_copy(update={"seq": entry.seq, "pending": None, "failures": 0})
        self._drawn.put(entry.subject, pointer)
        return pointer

    def _place(self, subject: str) -> Pointer | None:
        """Where it is to be told; None where it is told to nobody."""
        if subject.startswith("st-"):
            told = Told.of(self._door.entries(subject))
            return None if told is None else self._place_of(told)
        thread = self._drawn.get(change_of(subject))
        if thread is None or thread.thread_ts is None:
            return None
        return Pointer(channel=thread.channel, thread_ts=thread.thread_ts)

    def _place_of(self, told: Told) -> Pointer | None:
        """The thread in which it was said, else that of the change that it is about, else the channel."""
        where = told.statement.where
        if where.thread_ts is None and told.statement.about is not None:
            thread = self._drawn.get(told.statement.about)
            if thread is not None and thread.thread_ts is not None:
                return Pointer(channel=thread.channel, thread_ts=thread.thread_ts)
        return Pointer(channel=where.channel, thread_ts=where.thread_ts) if where.channel else None
