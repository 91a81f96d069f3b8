"""Draws what is recorded beside changes: the reminders of a suspicion, in the thread of the change that left it, and
what the watch found outside of changes, in the channel of the fleet file.

As the narrator does it for changes: in order, once, with the entry's place and hash in the metadata of each message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import structlog

from bot.cards.answers import told
from bot.cards.changed import outside_line
from bot.cards.locks import lock_line
from bot.cards.suspicion import reminder_card
from bot.once import Once, Overtaken
from bot.posting import Poster
from bot.slack import SlackRefused, SlackUnclear
from policies.events import Entry, Locked, OutsideSeen
from policies.fleet import Fleet
from policies.suspicion import change_of
from workers.drawn import DrawingLock, Drawn, Pointer
from workers.suspicions import Kept

log = structlog.get_logger(__name__)

BUSY_S = 0.3
SWEPT = 40


class Door(Protocol):
    """What is needed of the workers' client."""

    fleet: Fleet

    def locked(self, count: int) -> list[Entry]:
        """The last entries about locks."""

    def outside(self, count: int) -> list[Entry]:
        """The last things that the watch found."""

    def entries(self, change_id: str) -> list[Entry]:
        """Every entry of a subject."""

    def suspicion(self, name: str) -> Kept | None:
        """A suspicion."""

    def reminders(self, count: int) -> list[Entry]:
        """The last reminders."""

    def remind_of_suspicions(self) -> list[str]:
        """Record the reminders that are due."""


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
        self._once = Once(drawn, poster)
        self._clock = clock
        self._ring = ring

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
                self._draw(subject, lock)
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
        for subject, seq in {entry.subject: entry.seq for entry in self._door.reminders(SWEPT)}.items():
            pointer = self._drawn.get(subject)
            thread = self._drawn.get(change_of(subject))
            if (pointer is None or pointer.seq < seq) and thread is not None and thread.thread_ts is not None:
                self._ring(subject)
        for subject, seq in {entry.subject: entry.seq for entry in self._door.locked(SWEPT)}.items():
            pointer = self._drawn.get(subject)
            if pointer is None or pointer.seq < seq:
                self._ring(subject)
        for entry in self._door.outside(SWEPT) if self._door.fleet.channel else ():
            if self._drawn.get(entry.subject) is None:
                self._ring(entry.subject)

    def _draw(self, subject: str, lock: DrawingLock) -> None:
        if subject.startswith("out-"):
            self._draw_outside(subject, lock)
        elif subject.startswith("lk-"):
            self._draw_lock(subject, lock)
        else:
            self._draw_suspicion(subject, lock)

    def _draw_outside(self, subject: str, lock: DrawingLock) -> None:
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

    def _draw_lock(self, subject: str, lock: DrawingLock) -> None:
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

    def _draw_suspicion(self, subject: str, lock: DrawingLock) -> None:
        kept = self._door.suspicion(subject)
        thread = self._drawn.get(change_of(subject))
        if kept is None or thread is None or thread.thread_ts is None:
            return  # nobody is told where the change itself is told to nobody
        pointer = self._drawn.get(subject) or Pointer(channel=thread.channel, thread_ts=thread.thread_ts)
        for entry in self._door.entries(subject):
            if entry.seq > pointer.seq:
                _, pointer = self._once.post(entry, reminder_card(kept), pointer, kept.suspicion.at, lock)
                pointer = pointer.model_copy(update={"seq": entry.seq, "pending": None, "failures": 0})
                self._drawn.put(subject, pointer)
