"""Records of evidence shown in a channel or thread: a card with the verdict, and below it the pictures.

An exhibit is a record at a place and is shown there once: `ab-17_C0PERF`, in a thread `ab-17_C0PERF_1764600000-7`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from bot.cards.evidences import exhibit as exhibit_card
from bot.cards.shown import digest
from bot.messages import say
from bot.pictures import NothingToDraw, effect_png, effect_words, runs_png, runs_words
from bot.posting import Poster
from bot.slack import SlackRefused, SlackUnclear
from bot.uploading import NotShared, Picture, Sent, Uploader
from policies.events import Entry
from policies.events.records import EvidenceRecorded
from policies.evidence import Record
from workers.drawn import Drawn, Pointer

log = structlog.get_logger(__name__)

NAME = re.compile(r"(?P<record>ab-[0-9]+)_(?P<channel>[A-Z0-9]+)(_(?P<thread>[0-9]+-[0-9]+))?")
BUSY_S = 0.3
MOST_PAUSE_S = 60.0
MOST_FAILURES = 12  # about five minutes; a picture is not worth more
UPLOADS = 3  # times that bytes are sent: Slack may lose them
NOT_SHARED = "it took the files and shared none"
# Slack does not show anything there, or takes no files: asking again changes nothing
FINAL = frozenset({
    "missing_scope", "not_in_channel", "channel_not_found", "is_archived", "posting_to_channel_denied", "invalid_auth",
    "file_uploads_disabled", "file_uploads_except_images_disabled", "file_type_not_allowed", "restricted_action",
    "account_inactive", "token_revoked", NOT_SHARED,
})  # fmt: skip


class Door(Protocol):
    """What is needed of the workers' client."""

    def entries(self, change_id: str) -> list[Entry]:
        """Every entry of a subject."""


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A record at a place. Raises: ValueError for a name that is none."""

    record: str
    channel: str
    thread_ts: str | None = None

    @classmethod
    def named(cls, name: str) -> Exhibit:
        """Read from its name."""
        found = NAME.fullmatch(name)
        if found is None:
            raise ValueError(f"`{name}` is no exhibit")
        thread = found["thread"]
        return cls(found["record"], found["channel"], thread.replace("-", ".") if thread else None)

    @property
    def name(self) -> str:
        """As a queue entry carries it."""
        thread = f"_{self.thread_ts.replace('.', '-')}" if self.thread_ts else ""
        return f"{self.record}_{self.channel}{thread}"


def is_exhibit(name: str) -> bool:
    """Whether a name of something to draw is that of an exhibit, and not a change's."""
    return NAME.fullmatch(name) is not None


def pictures(record: Record) -> list[Picture]:
    """What can be drawn of a record; nothing of one that a person typed."""
    judged = record.judgement
    if judged is None:
        return []
    against = "unset" if record.baseline is None else record.baseline
    subject = f"{record.knob} {record.value} against {against}"
    made: list[Picture] = []
    for kind, png, words in (("effect", effect_png, effect_words), ("runs", runs_png, runs_words)):
        try:
            drawn = png(judged, subject)
        except NothingToDraw:
            continue
        made.append(Picture(f"{record.id}-{kind}.png", f"{record.id} {kind}", words(judged, subject), drawn))
    return made


class Exhibits:
    """`clock` gives epoch seconds, `draws` the pictures of a record."""

    def __init__(
        self,
        door: Door,
        drawn: Drawn,
        poster: Poster,
        uploader: Uploader,
        clock: Callable[[], float],
        draws: Callable[[Record], Sequence[Picture]] = pictures,
    ) -> None:
        self._draws = draws
        self._door = door
        self._drawn = drawn
        self._poster = poster
        self._uploader = uploader
        self._clock = clock

    def draw(self, name: str) -> None:
        """Show what is not shown yet; again later when Slack fails.

        Raises: StoreUnavailable.
        """
        with self._drawn.lock(name) as lock:
            if lock is None:
                self._drawn.later(name, self._clock() + BUSY_S)
                return
            self._drawn.begun(name, self._clock())
            try:
                self._draw(Exhibit.named(name))
            except (SlackRefused, SlackUnclear) as error:
                self._postpone(Exhibit.named(name), error)
            self._drawn.finished(name)

    def _draw(self, place: Exhibit) -> None:
        entries = self._door.entries(place.record)
        event = entries[0].event if entries else None
        if not isinstance(event, EvidenceRecorded):
            return
        pointer = self._drawn.get(place.name) or Pointer(channel=place.channel, thread_ts=place.thread_ts)
        if pointer.card_ts is None:
            pointer = self._post(place, entries[0], event.record, pointer)
        if pointer.seq < entries[0].seq:
            self._show(place, event.record, pointer)
            self._drawn.put(place.name, pointer.model_copy(update={"seq": entries[0].seq, "failures": 0}))

    def _post(self, place: Exhibit, entry: Entry, record: Record, pointer: Pointer) -> Pointer:
        found = None
        if pointer.pending is not None:  # an earlier attempt ended unclearly
            found = self._poster.find(place.channel, entry, place.thread_ts, entry.at)
        if found is None:
            card = exhibit_card(record, self._clock())
            pointer = pointer.model_copy(update={"pending": entry.seq, "card": digest(card)})
            self._drawn.put(place.name, pointer)
            found = self._poster.post(place.channel, card, entry, place.thread_ts)
        pointer = pointer.model_copy(update={"card_ts": found.ts, "pending": None, "failures": 0})
        self._drawn.put(place.name, pointer)
        return pointer

    def _show(self, place: Exhibit, record: Record, pointer: Pointer) -> None:
        """The pictures, in one message below the card; with new bytes when Slack took some and shared none."""
        thread_ts = place.thread_ts or pointer.card_ts
        for attempt in range(UPLOADS):
            note = f"{place.name}-{pointer.card_ts}-{attempt}"
            files = self._sent(record, f"files-{note}")
            if not files:
                return
            if self._drawn.noted(f"spent-{note}") is not None:
                if self._uploader.is_shown(files[0], place.channel):
                    return
                continue
            try:
                self._uploader.share(files, place.channel, thread_ts, say("exhibit.pictures", record=record.id))
            except NotShared:
                self._drawn.note(f"spent-{note}", "1")
                raise
            return
        raise SlackRefused("files.completeUploadExternal", NOT_SHARED)

    def _sent(self, record: Record, note: str) -> list[Sent]:
        """The pictures as Slack has their bytes: once an attempt, so that none is shown twice."""
        if (before := self._drawn.noted(note)) is not None:
            return [Sent(*line.split(" ", 1)) for line in before.splitlines()]
        sent = [self._uploader.send(picture) for picture in self._draws(record)]
        if sent:
            self._drawn.note(note, "\n".join(f"{one.file} {one.title}" for one in sent))
        return sent

    def _postpone(self, place: Exhibit, error: SlackRefused | SlackUnclear) -> None:
        pointer = self._drawn.get(place.name) or Pointer(channel=place.channel, thread_ts=place.thread_ts)
        pointer = pointer.model_copy(update={"failures": pointer.failures + 1})
        self._drawn.put(place.name, pointer)
        final = isinstance(error, SlackRefused) and error.error in FINAL
        if final or pointer.failures >= MOST_FAILURES:
            log.warning("evidence is not shown", exhibit=place.name, error=error.message, failures=pointer.failures)
            self._give_up(place, pointer, error)
            return
        asked = error.retry_after_s if isinstance(error, SlackRefused) else None
        pause_s = asked if asked is not None else min(MOST_PAUSE_S, 0.5 * 2.0 ** min(pointer.failures, 10))
        log.warning("evidence waits", exhibit=place.name, error=error.message, pause_s=pause_s)
        self._drawn.later(place.name, self._clock() + pause_s)

    def _give_up(self, place: Exhibit, pointer: Pointer, error: SlackRefused | SlackUnclear) -> None:
        """Say on the card why there are no pictures, where there is a card."""
        entries = self._door.entries(place.record)
        event = entries[0].event if entries else None
        if pointer.card_ts is None or not isinstance(event, EvidenceRecorded):
            return
        card = exhibit_card(event.record, self._clock(), error.message)
        update: dict[str, int | str] = {"seq": entries[0].seq}
        try:
            self._poster.update(place.channel, pointer.card_ts, card)
            update["card"] = digest(card)
        except (SlackRefused, SlackUnclear) as again:
            log.warning("card is not updated", exhibit=place.name, error=again.message)
        self._drawn.put(place.name, pointer.model_copy(update=update))
