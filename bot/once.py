"""Posting what draws an entry once, whatever dies or answers late: noted before, looked for after."""

from __future__ import annotations

from bot.cards.kit import Card
from bot.cards.shown import digest
from bot.posting import Posted, Poster
from bot.slack import SlackRefused, SlackUnclear
from policies.events import Entry
from workers.drawn import DrawingLock, Drawn, Pointer

MOST_PAUSE_S = 60.0


class Overtaken(Exception):  # not an error: another narrator draws this now
    """The lock was lost."""


class Once:
    """Raises from `post`: Overtaken, SlackRefused, SlackUnclear, StoreUnavailable."""

    def __init__(self, drawn: Drawn, poster: Poster) -> None:
        self._drawn = drawn
        self._poster = poster

    def post(
        self, entry: Entry, card: Card, pointer: Pointer, since: float, lock: DrawingLock, *, loud: bool = False
    ) -> tuple[Posted, Pointer]:
        """Post, unless it stands there: posted by an attempt that ended unclearly, or before the store was made anew.

        since: it cannot be older, epoch seconds. loud: a line of a thread that the channel is told too.

        The pointer is that of the entry's subject.
        """
        if lock.is_stale():
            raise Overtaken
        if pointer.pending == entry.seq or entry.seq <= self._drawn.blind_to():
            found = self._find(entry, pointer, since)
            if found is not None:
                return found, pointer
        pointer = pointer.model_copy(update={"pending": entry.seq})
        self._drawn.put(entry.subject, pointer)
        posted = self._poster.post(pointer.channel, card, entry, pointer.thread_ts, loud=loud)
        self._drawn.said(entry.subject, entry.seq, digest(card))
        if lock.is_stale():
            self._give_way(posted, entry, pointer, since)
        return posted, pointer

    def pause_s(self, subject: str, error: SlackRefused | SlackUnclear) -> tuple[float, int]:
        """How long to wait after a failure, and how many there were in a row; counted in the pointer."""
        pointer = self._drawn.get(subject)
        failures = pointer.failures + 1 if pointer else 1
        if pointer is not None:
            self._drawn.put(subject, pointer.model_copy(update={"failures": failures}))
        asked = error.retry_after_s if isinstance(error, SlackRefused) else None
        return (asked if asked is not None else min(MOST_PAUSE_S, 0.5 * 2.0 ** min(failures, 10))), failures

    def _give_way(self, posted: Posted, entry: Entry, pointer: Pointer, since: float) -> None:
        """This process was stopped in the middle of a post: take it back where another narrator has made it too."""
        twin = self._poster.find(pointer.channel, entry, pointer.thread_ts, since, besides=posted.ts)
        if twin is not None:
            self._poster.delete(pointer.channel, posted.ts)
        raise Overtaken

    def _find(self, entry: Entry, pointer: Pointer, since: float) -> Posted | None:
        try:
            return self._poster.find(pointer.channel, entry, pointer.thread_ts, since)
        except SlackRefused as error:
            if error.error == "thread_not_found":
                # the parent is gone, so what was posted then stands in the channel
                return self._poster.find(pointer.channel, entry, None, since)
            raise
