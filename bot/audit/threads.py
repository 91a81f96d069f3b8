"""All threads against the ledger. Reads the ledger, then Slack, then the ledger's new end: work may go on meanwhile."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from bot.audit.asides import Look, look_of, subject_of
from bot.audit.book import Book
from bot.audit.judge import Drawing, judge, stray
from bot.audit.message import Me, Message
from bot.audit.reading import Slack
from bot.cards.kit import Card
from bot.cards.shown import shown
from bot.cards.story import Story
from bot.posting import SKEW_S
from bot.slack import SlackRefused, SlackUnclear
from bot.telling import story_of
from bot.thread import line
from policies.change import IllegalTransition
from policies.errors import OpsError, StoreUnavailable
from policies.events import Entry
from policies.finding import Finding
from policies.fleet import Fleet
from workers.audit import Copies
from workers.drawn import Pointer

ROUNDS = 4  # a thread that is being drawn while it is read is looked at again
ROUND_S = 1.0
Place = tuple[str, str]  # channel, timestamp of the thread's parent


@dataclass(frozen=True, slots=True)
class Compared:
    """What came of it: problems, notes that are none, and how much was looked at."""

    problems: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    threads: int
    messages: int


class Threads:
    """Compares threads with `copies`. `pause` waits for seconds.

    Raises: StoreUnavailable, and SlackRefused or SlackUnclear when Slack does not even say who the bot is.
    """

    def __init__(
        self, copies: Copies, slack: Slack, fleet: Fleet, pause: Callable[[float], object] = time.sleep
    ) -> None:
        self._copies = copies
        self._door = copies.client(fleet)
        self._slack = slack
        self._fleet = fleet
        self._pause = pause
        self._book = Book(copies)
        self._messages = 0

    @cached_property
    def _me(self) -> Me:
        return self._slack.me()

    @cached_property
    def _handles(self) -> dict[str, str]:
        return self._slack.groups()

    def compare(self, only: Collection[str] = ()) -> Compared:
        """Every thread, or those of some changes, and the channels in which they stand."""
        wanted = {name: told for name, told in self._book.asked().items() if not only or name in only}
        since: dict[str, float] = {}
        for asked, at in wanted.values():
            since.setdefault(asked.where.channel, at)
        channels, found = self._channels(since)
        places: dict[Place, list[str]] = defaultdict(list)
        for name, (asked, _) in wanted.items():
            pointer = self._copies.drawn.get(name)
            thread_ts = pointer.thread_ts if pointer is not None else asked.where.thread_ts
            channel = pointer.channel if pointer is not None else asked.where.channel
            thread_ts = thread_ts or self._rediscovered(name, channels.get(channel, ()))
            if thread_ts is not None:
                places[channel, thread_ts].append(name)
            else:
                found += self._undrawn(name)
        for place, names in self._beside().items():
            if place in places or not only:
                places[place] += names
        for place, names in places.items():
            found += self._settled(place, names)
        found += self._strays(channels)
        bad = tuple(one for one in found if one.effect == "refuse")
        return Compared(bad, tuple(one for one in found if one.effect != "refuse"), len(places), self._messages)

    def _channels(self, since: Mapping[str, float]) -> tuple[dict[str, list[Message]], list[Finding]]:
        """What apps said in each channel itself; people may say there what they like."""
        read: dict[str, list[Message]] = {}
        found: list[Finding] = []
        for channel, at in since.items():
            try:
                said = self._slack.channel(channel, at - SKEW_S)
            except (SlackRefused, SlackUnclear) as error:
                found.append(_told("unreadable-channel", channel=channel, why=error.message))
                continue
            self._messages += len(said)
            read[channel] = [m for m in said if m.bot or m.claim is not None or self._me.wrote(m)]
        return read, found

    def _rediscovered(self, name: str, messages: Sequence[Message]) -> str | None:
        """The thread of a change from the channel, when it is not known any more where it was drawn."""
        mine = (m for m in messages if m.claim is not None and m.claim.change == name and self._me.wrote(m))
        return next((message.ts for message in mine), None)

    def _beside(self) -> dict[Place, list[str]]:
        """Where things are told that are no changes, by the names of their pointers."""
        places: dict[Place, list[str]] = defaultdict(list)
        for name in self._copies.drawn.names():
            subject = subject_of(name)
            pointer = self._copies.drawn.get(name) if self._book.of(subject) else None
            ts = (pointer.thread_ts or pointer.card_ts) if pointer is not None else None
            if pointer is not None and ts is not None and not self._book.is_change(subject):
                places[pointer.channel, ts].append(name)
        return places

    def _strays(self, channels: Mapping[str, Sequence[Message]]) -> list[Finding]:
        self._book.catch_up()
        cards: dict[str, set[str]] = defaultdict(set)
        for name in self._copies.drawn.names():
            pointer = self._copies.drawn.get(name)
            if pointer is not None and pointer.card_ts is not None:
                cards[subject_of(name)].add(pointer.card_ts)
        said = (message for messages in channels.values() for message in messages)
        return [one for message in said for one in stray(message, self._me, self._book, cards)]

    def _settled(self, place: Place, names: Sequence[str]) -> list[Finding]:
        """One thread; again when it is found wanting while somebody draws it."""
        found: list[Finding] = []
        for _ in range(ROUNDS):
            before = {name: self._copies.drawn.get(name) for name in names}
            try:
                messages = self._slack.thread(*place)
            except (SlackRefused, SlackUnclear) as error:
                return [_unread(name, error) for name in names]
            self._book.catch_up()
            after = {name: self._copies.drawn.get(name) for name in names}
            found = self._judged(messages, before, after)
            if before == after or all(one.effect != "refuse" for one in found):
                break
            self._pause(ROUND_S)
        self._messages += len([message for message in messages if message.is_reply])
        return found

    def _judged(
        self,
        messages: Sequence[Message],
        before: Mapping[str, Pointer | None],
        after: Mapping[str, Pointer | None],
    ) -> list[Finding]:
        found: list[Finding] = []
        drawings: dict[str, Drawing] = {}
        skipped = set()
        for name in before:
            subject = subject_of(name)
            try:
                drawings[subject] = self._drawing(subject, before[name], after[name])
            except (IllegalTransition, IndexError, StoreUnavailable) as error:
                found.append(_told("not-compared", change=subject, why=str(error)))
                skipped.add(subject)
        for subject in {m.claim.change for m in messages if m.claim is not None} - set(drawings):
            pointer = self._copies.drawn.get(subject)
            if pointer is not None and pointer.thread_ts in {m.ts for m in messages}:
                skipped.add(subject)  # drawn in the same thread, and not asked about
        kept = [m for m in messages if m.claim is None or m.claim.change not in skipped]
        return found + judge(kept, drawings, self._me, self._book)

    def _drawing(self, name: str, before: Pointer | None, after: Pointer | None) -> Drawing:
        entries = self._book.of(name)
        lost = any(pointer.lost for pointer in (before, after) if pointer is not None)
        look = self._look(entries, lost=lost) if self._book.is_change(name) else look_of(self._door, entries)
        said = self._copies.drawn.words(name)
        return Drawing(name, entries[0], look.lines, said, before, after, look.card)

    def _look(self, entries: tuple[Entry, ...], *, lost: bool) -> Look:
        """How a change has to look."""
        story = self._story(entries)
        lines: dict[int, tuple[Card, ...]] = {}
        for chapter in story.chapters():
            if (bare := line(chapter)) is not None:
                # with the groups by name, or by id where that was known when it was drawn
                named = line(replace(chapter, groups=self._handles)) if chapter.change.planned else bare
                lines[chapter.entry.seq] = tuple(Card(text) for text in dict.fromkeys((str(bare), str(named))))
        return Look(lines, lambda: shown(replace(story, groups=self._handles), lost=lost))

    def _story(self, entries: tuple[Entry, ...]) -> Story:
        """As the narrator tells it; where the ledger's lists are damaged, from the change's own entries alone."""
        try:
            return story_of(self._door, entries)
        except StoreUnavailable:
            return Story.of(entries, fleet=self._fleet)

    def _undrawn(self, name: str) -> list[Finding]:
        """A change without a thread: before there is a plan or an end, there is nothing to draw."""
        entries = self._book.of(name)
        if len(entries) < 2:
            return []
        values: dict[str, str | int | float | None] = {"change": name, "n": len(entries), "seq": entries[0].seq}
        return [Finding(code="thread.pending", effect="note", values=values)]


def _unread(change: str, error: OpsError) -> Finding:
    if isinstance(error, SlackRefused) and error.error == "thread_not_found":
        return _told("gone", change=change)
    return _told("unreadable", change=change, why=error.message)


def _told(name: str, **values: str) -> Finding:
    return Finding(code=f"thread.{name}", effect="refuse", values=dict(values))
