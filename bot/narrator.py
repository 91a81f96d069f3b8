"""The narrator: draws the ledger's entries of one change into its thread, in order, and keeps its card up to date.

Work never waits for it. When Slack fails, the drawing is due again later with growing pauses and then catches up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import structlog

from bot.cards.emergency import loud
from bot.cards.kit import Card
from bot.cards.plan import handles
from bot.cards.shown import digest, shown
from bot.cards.story import Story
from bot.once import Once, Overtaken
from bot.posting import Posted, Poster
from bot.slack import SlackRefused, SlackUnclear
from bot.telling import story_of
from bot.thread import line
from policies.approvals import reminder_at
from policies.change import ENDED, Change
from policies.events import Entry
from policies.evidence import Record
from policies.fleet import Fleet
from workers.drawn import DrawingLock, Drawn, Pointer

log = structlog.get_logger(__name__)

CARD_EVERY_S = 2.0  # Source: FACTS-slack 3, chat.update is 50 a minute for the whole workspace
BUSY_S = 0.3
SWEPT = 40
CARD_WITHIN_S = 7 * 86_400.0  # a card was posted so soon after its question, whatever was away meanwhile
GONE = frozenset({"message_not_found", "thread_not_found", "cant_update_message", "edit_window_closed"})


class Door(Protocol):
    """What the narrator needs of the workers' client."""

    fleet: Fleet

    def entries(self, change_id: str) -> list[Entry]:
        """Every entry of the change."""

    def evidence(self, knob: str | None = None) -> list[Record]:
        """Evidence records of a knob."""

    def recent(self, count: int) -> list[Change]:
        """The last changes."""

    def brought(self, knob: str, before_seq: int) -> tuple[Entry, Entry] | None:
        """The knob's last change that succeeded before that place in the ledger."""

    def deployed(self, service: str, before_seq: int) -> tuple[Entry, Entry] | None:
        """The service's last deploy or rollback that succeeded before that place in the ledger."""

    def remind(self, change_id: str) -> bool:
        """Record that those who may approve are reminded, if it is time."""


class Narrator:
    """`clock` gives epoch seconds; `ring` rings the job `draw` of a change."""

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

    def draw(self, change_id: str) -> None:
        """Bring thread and card of one change up to date.

        Raises: StoreUnavailable.
        """
        with self._drawn.lock(change_id) as lock:
            if lock is None:
                self._drawn.later(change_id, self._clock() + BUSY_S)
                return
            self._drawn.begun(change_id, self._clock())  # whatever happens to this process, it is drawn to the end
            try:
                self._draw(change_id, lock)
            except Overtaken:
                self._drawn.later(change_id, self._clock() + BUSY_S)
            except (SlackRefused, SlackUnclear) as error:
                self._postpone(change_id, error)
            self._drawn.finished(change_id)

    def tick(self) -> None:
        """Ring the drawings whose time has come."""
        for change_id in self._drawn.due(self._clock()):
            self._ring(change_id)

    def sweep(self) -> None:
        """Ring every recent change that is not drawn as far as it went: a lost bell costs no line."""
        for change in self._door.recent(SWEPT):
            pointer = self._drawn.get(change.id)
            entries = self._door.entries(change.id)
            if entries and (pointer is None or pointer.seq < entries[-1].seq) and _where(entries):
                self._ring(change.id)

    def _draw(self, change_id: str, lock: DrawingLock) -> None:
        entries = self._door.entries(change_id)
        where = _where(entries)
        if not entries or not where:
            return
        story = story_of(self._door, entries)
        if story.change.planned is None and story.change.state == "asked":
            return  # the receipt said that hosts are being read; there is nothing to show yet
        asked = story.change.asked
        story = replace(story, groups=self._groups(story))
        pointer = self._drawn.get(change_id)
        if pointer is None:
            pointer = Pointer(channel=where, thread_ts=asked.where.thread_ts if asked else None)
        if pointer.unsure_to > pointer.seq:
            pointer = self._look_up(story, pointer)
        pointer = self._ensure_card(story, pointer, lock)
        for chapter in story.chapters():
            pointer = self._ensure_line(story, chapter, pointer, lock)
        self._refresh_card(story, pointer, lock)
        self._remind(story.change)

    def _remind(self, change: Change) -> None:
        """Have those who may approve reminded when it is time; the line is drawn of the entry that this records."""
        at = reminder_at(change)
        if at is None:
            return
        if self._clock() < at:
            self._drawn.later(change.id, at)
        elif self._door.remind(change.id):
            self._ring(change.id)

    def _groups(self, story: Story) -> dict[str, str]:
        """Ids of the groups that are named by handle, where a line is still to mention them."""
        planned, override = story.change.planned, story.change.override
        asked = planned.mention if story.change.state == "planned" and planned is not None else ()
        if not handles((*asked, *(override.mention if override is not None else ()))):
            return {}
        try:
            return self._poster.groups()
        except (SlackRefused, SlackUnclear) as error:
            log.warning("groups are named without a mention", change=story.change.id, error=error.message)
            return {}

    def _ensure_card(self, story: Story, pointer: Pointer, lock: DrawingLock) -> Pointer:
        """Post the card where it is not there yet. Its metadata name the first entry: somebody asked."""
        if pointer.card_ts is not None:
            return pointer
        card = shown(story, lost=pointer.lost)
        posted, pointer = self._once.post(story.entries[0], card, pointer, story.change.asked_at, lock)
        if pointer.thread_ts is not None and posted.thread_ts is None:
            return self._ensure_card(story, self._lose_thread(story, pointer, posted), lock)
        pointer = pointer.model_copy(
            update={
                "card_ts": posted.ts,
                "thread_ts": pointer.thread_ts or posted.ts,
                "pending": None,
                "card": digest(card),
                "card_at": self._clock(),
                "failures": 0,
            }
        )
        self._drawn.put(story.change.id, pointer)
        return pointer

    def _ensure_line(self, story: Story, chapter: Story, pointer: Pointer, lock: DrawingLock) -> Pointer:
        """Post the line of one entry, once."""
        entry = chapter.entry
        if entry.seq <= pointer.seq:
            return pointer
        said = line(chapter)
        if said is not None:
            since = story.change.asked_at
            posted, pointer = self._once.post(entry, Card(said), pointer, since, lock, loud=loud(entry))
            if posted.thread_ts is None:
                pointer = self._ensure_card(story, self._lose_thread(story, pointer, posted), lock)
                return self._ensure_line(story, chapter, pointer, lock)
        pointer = pointer.model_copy(update={"seq": entry.seq, "pending": None, "failures": 0})
        self._drawn.put(story.change.id, pointer)
        return pointer

    def _look_up(self, story: Story, pointer: Pointer) -> Pointer:
        """How far a change was drawn, from what stands in Slack: the store has forgotten it."""
        asked_at, first = story.change.asked_at, story.entries[0]
        until = asked_at + CARD_WITHIN_S
        seq, found = 0, None
        try:
            found = self._poster.find(pointer.channel, first, pointer.thread_ts, asked_at, until=until)
        except SlackRefused as error:
            if error.error != "thread_not_found":
                raise
        if found is not None:
            thread_ts = pointer.thread_ts or found.ts
            seq = self._poster.drawn(pointer.channel, thread_ts, story.entries)
            pointer = pointer.model_copy(update={"card_ts": found.ts, "thread_ts": thread_ts})
        pointer = pointer.model_copy(update={"seq": max(pointer.seq, seq), "unsure_to": 0})
        self._drawn.put(story.change.id, pointer)
        log.info("thread was looked up", change=story.change.id, found=found is not None, drawn_to=seq)
        return pointer

    def _lose_thread(self, story: Story, pointer: Pointer, stray: Posted) -> Pointer:
        """The thread's parent is gone and Slack put the line into the channel: take it back, start anew."""
        try:
            self._poster.delete(pointer.channel, stray.ts)
        except SlackRefused as error:
            log.warning("stray line stays", change=story.change.id, error=error.error)
        log.warning("thread is gone", change=story.change.id, channel=pointer.channel)
        lost = pointer.model_copy(update={"thread_ts": None, "card_ts": None, "pending": None, "lost": True})
        self._drawn.put(story.change.id, lost)
        return lost

    def _refresh_card(self, story: Story, pointer: Pointer, lock: DrawingLock) -> None:
        card = shown(story, lost=pointer.lost)
        if pointer.card_ts is None or digest(card) == pointer.card:
            return
        now = self._clock()
        waits = story.change.state not in ENDED | {"planned", "held", "approved"}
        if waits and 0 <= now - pointer.card_at < CARD_EVERY_S:
            self._drawn.later(story.change.id, pointer.card_at + CARD_EVERY_S)
            return
        if lock.is_stale():
            raise Overtaken
        try:
            self._poster.update(pointer.channel, pointer.card_ts, card)
        except SlackRefused as error:
            if error.error not in GONE:
                raise
            thread = None if pointer.thread_ts == pointer.card_ts else pointer.thread_ts
            lost = pointer.model_copy(update={"card_ts": None, "thread_ts": thread, "lost": True, "pending": None})
            self._ensure_card(story, lost, lock)
            return
        pointer = pointer.model_copy(update={"card": digest(card), "card_at": now, "failures": 0})
        self._drawn.put(story.change.id, pointer)

    def _postpone(self, change_id: str, error: SlackRefused | SlackUnclear) -> None:
        pause_s, failures = self._once.pause_s(change_id, error)
        log.warning("drawing waits", change=change_id, error=error.message, pause_s=pause_s, failures=failures)
        self._drawn.later(change_id, self._clock() + pause_s)


def _where(entries: list[Entry]) -> str:
    """The channel in which the change was asked; empty for a terminal."""
    event = entries[0].event if entries else None
    return event.where.channel if event is not None and event.kind == "asked" else ""
