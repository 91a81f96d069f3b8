"""Hands and eyes of the story: typing, clicking, and reading the workspace. The ledger only says when to go on."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import JsonValue

from sandbox.plain import plain, words_of
from sandbox.stage import CHANNEL, Stage, StageError

Json = dict[str, JsonValue]
ENDED = frozenset({
    "refused", "nothing_to_do", "denied", "expired", "succeeded", "rolled_back", "failed", "aborted", "held",
})  # fmt: skip
OVER = ENDED - {"held"}  # nothing but a refused click can follow
WAITS_FOR_A_CLICK = "planned"
PLANNED_AGAIN = "planned again"
DATE = re.compile(r"<!date\^([0-9]+)\^")
CARD_S = 40.0
ANSWER_S = 15.0
STILL_S = 0.5  # a thread without news for so long is taken for drawn
# after so much silence the ledger is asked, near the end and before: each look is a process of its own
STILLS_S = (0.1, 0.5, 1.0, 2.0, 4.0)
SILENCES_S = (4.0, 8.0, 16.0)
UNREAD_S = 45.0  # a ledger that cannot be read for so long is not waited for
CLICK_S = 20.0  # a click that has not been recorded for so long will not be


@dataclass(frozen=True, slots=True)
class Said:
    """A line in the thread of a change. `at` is the time that it states, `ts` the workspace's own; epoch seconds."""

    at: int | None
    ts: float
    text: str


class Eyes:
    """What a person at the screen of the stage can do and see."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self._people = stage.slack.people
        self.ends: dict[str, JsonValue] = {}  # number of the last entry of a change that `ended` saw end

    # hands

    def command(self, user: str, text: str) -> str:
        """Type a command that asks for a change; the change's id, once the workspace shows it.

        Raises: StageError when it shows none.
        """
        known, seen = self.changes(), len(self.ephemerals(user))
        self._people.command(user, CHANNEL, text)
        if not self.until(lambda: self.changes() - known, CARD_S):
            told = " / ".join(self.ephemerals(user)[seen:]) or "nothing"
            raise StageError(f"no change appeared within {CARD_S:g} s of `{text}`; the answer was: {told}")
        return (self.changes() - known).pop()

    def say(self, user: str, text: str) -> str:
        """Type a command that asks for no change; what only `user` is told.

        Raises: StageError when nothing is.
        """
        seen = len(self.ephemerals(user))
        self._people.command(user, CHANNEL, text)
        told = self.ephemeral(user, seen)
        if not told:
            raise StageError(f"`{text}` was not answered within {ANSWER_S:g} s")
        return told

    def click(self, user: str, card: Json, order: str) -> None:
        """Click the confirm button of an order, dialog included."""
        for button in buttons(card):
            if json.loads(str(button.get("value") or "{}")).get("o") == order:
                ts, action = str(card["ts"]), str(button["action_id"])
                self._people.click(user, CHANNEL, ts, action, confirmed=True)
                return
        raise StageError(f"the card has no button for {order}")

    # the workspace

    def until(self, predicate: Callable[[], object], timeout_s: float) -> bool:
        """Wait until `predicate` holds of the workspace; false when the time is over.

        Raises: StageError when the product ended.
        """
        deadline = time.monotonic() + timeout_s
        while not self._people.wait_for(predicate, max(0.0, min(1.0, deadline - time.monotonic()))):
            self.stage.check_alive()
            if time.monotonic() > deadline:
                return False
        return True

    def transcript(self, seen_by: str | None = None) -> list[Json]:
        """Everything in the channel."""
        return self._people.transcript(CHANNEL, seen_by=seen_by)

    def changes(self) -> set[str]:
        """Ids of the changes that the channel shows."""
        return {change for m in self.transcript() if (change := change_of(m)).startswith("C-")}

    def statements(self) -> dict[str, Json]:
        """Statements by their ids: the message that each was first told with."""
        found: dict[str, Json] = {}
        for message in self.transcript():
            if (name := change_of(message)).startswith("st-"):
                found.setdefault(name, message)
        return found

    def message(self, change: str) -> Json | None:
        """The card of a change: its first message that is no reply."""
        cards = [m for m in self.transcript() if change_of(m) == change and not is_reply(m)]
        return cards[-1] if cards else None

    def card(self, change: str) -> Json:
        """The card of a change, once it can be clicked.

        Raises: StageError when it ended without a plan.
        """
        deadline = time.monotonic() + CARD_S
        while time.monotonic() < deadline:
            if self.until(lambda: digests(self.message(change) or {}), SILENCES_S[0]):
                return self.message(change) or {}
            if self.state(change) in ENDED:
                break
        found = self.message(change)
        shown = " / ".join(self.text(found).splitlines()[:3]) if found else "nothing"
        raise StageError(f"{change} offers no plan; it shows: {shown}")

    def ephemeral(self, user: str, seen: int) -> str:
        """What only `user` sees, after the `seen` earlier ones; empty when nothing comes."""
        self.until(lambda: len(self.ephemerals(user)) > seen, ANSWER_S)
        return "\n".join(self.ephemerals(user)[seen:])

    def ephemerals(self, user: str) -> list[str]:
        """Texts that only `user` sees."""
        return [self.text(m) for m in self.transcript(user) if m["ephemeral_to"] == user]

    def text(self, message: Json) -> str:
        """What a message shows, as plain words."""
        names = {u.id: u.name for u in self.stage.slack.workspace.users.values()}
        return "\n".join(plain(part, lambda i: names.get(i, i)) for part in words_of(dict(message)))

    def done(self, change: str, longest_s: float) -> bool:
        """Wait until the card of a change asks for nothing more; whether it says that the change is done."""
        self.until(lambda: self.asks_nothing(change), longest_s)
        return "done in" in self.text(self.message(change) or {})

    def thread(self, change: str) -> list[Said]:
        """The lines in the thread of a change, in the order in which they stand."""
        said: list[Said] = []
        for message in self.transcript():
            if change_of(message) == change and is_reply(message):
                found = DATE.search(str(message["text"]))
                said.append(Said(int(found[1]) if found else None, float(str(message["ts"])), self.text(message)))
        return said

    # when to go on

    def ended(self, change: str, longest_s: float, near_end: Callable[[], object]) -> str:
        """Wait until a change has ended, is held or was planned anew, and its thread is drawn; its state.

        near_end: a cheap sign that the end is not far; until then the ledger is asked only after long silences.
        Raises: StageError when that takes more than `longest_s`.
        """
        begun = read_at = time.monotonic()
        looks = 0
        while time.monotonic() - begun < longest_s:
            before = self._version(change)
            near = bool(near_end())
            pauses_s = STILLS_S if near else SILENCES_S
            pause_s = pauses_s[min(looks, len(pauses_s) - 1)]
            if self.until(partial(self._moved, change, before, None if near else near_end), pause_s):
                looks = 0
                continue
            looks += 1
            try:
                about = self.about(change)
            except StageError:
                self.stage.check_alive()
                if time.monotonic() - read_at > UNREAD_S:
                    raise
                continue  # the store may be coming back
            read_at, state = time.monotonic(), state_of(about)
            unheard = state == WAITS_FOR_A_CLICK and time.monotonic() - begun > CLICK_S
            if state in ENDED or state == PLANNED_AGAIN or unheard:
                if state in OVER:
                    self.ends[change] = about[-1]["seq"]
                self._settle(change, about[-1]["seq"])
                return state
        raise StageError(f"{change} is still {self.state(change) or 'unknown'} after {longest_s:g} s")

    def asks_nothing(self, change: str) -> bool:
        """The card of a change is there and has no button: it has ended."""
        message = self.message(change)
        return message is not None and not buttons(message)

    def _settle(self, change: str, last: JsonValue) -> None:
        """Wait until the channel shows this entry, the last that was recorded, and nothing new comes."""
        deadline = time.monotonic() + ANSWER_S
        self.until(lambda: last in self.drawn(change), ANSWER_S)
        while time.monotonic() < deadline:
            before = self._version(change)
            if not self.until(partial(self._moved, change, before, None), STILL_S):
                return

    def entries(self) -> list[Json]:
        """Entries of the ledger, as exported.

        Raises: StageError when it cannot be read.
        """
        done = self.stage.clawback("audit", "export")
        if done.returncode != 0:
            raise StageError(f"the ledger cannot be read: {done.stderr.strip()[-300:]}")
        return [json.loads(line) for line in done.stdout.splitlines()]

    def about(self, change: str) -> list[Json]:
        """Entries about a change without refused clicks."""
        return [e for e in self.entries() if e["subject"] == change and _kind(e) != "click_refused"]

    def drawn(self, change: str) -> set[JsonValue]:
        """Numbers of the entries that messages about the change draw."""
        return {payload_of(message).get("seq") for message in self.transcript() if change_of(message) == change}

    def state(self, change: str) -> str:
        """Kind of the last event about a change, as `state_of`."""
        return state_of(self.about(change))

    def _version(self, change: str) -> tuple[int, str]:
        """Changes whenever something about the change is posted or edited."""
        about = [m for m in self.transcript() if change_of(m) == change]
        return len(about), max((str(e["ts"]) for m in about if isinstance(e := m["edited"], dict)), default="")

    def _moved(self, change: str, before: tuple[int, str], near_end: Callable[[], object] | None) -> bool:
        return self._version(change) != before or (near_end is not None and bool(near_end()))


def state_of(about: Sequence[Json]) -> str:
    """Kind of the last of a change's entries; `planned again` after a plan that was overtaken."""
    kinds = [_kind(entry) for entry in about]
    if kinds[-1:] == [WAITS_FOR_A_CLICK] and "replan" in kinds:
        return PLANNED_AGAIN
    return kinds[-1] if kinds else ""


def buttons(message: Json) -> list[Json]:
    """The buttons of a message."""
    blocks = message.get("blocks")
    rows = [b for b in blocks if isinstance(b, dict) and b.get("type") == "actions"] if isinstance(blocks, list) else []
    found: list[Json] = []
    for row in rows:
        elements = row.get("elements")
        found += [e for e in elements if isinstance(e, dict)] if isinstance(elements, list) else []
    return found


def digests(message: Json) -> list[str]:
    """Values of the buttons that confirm: they carry a restart order and the digest of its plan."""
    values = [str(b.get("value") or "") for b in buttons(message)]
    return [value for value in values if '"d"' in value and '"o"' in value]


def questions(message: Json) -> list[str]:
    """Labels of the buttons that ask for a decision: all but [Details]."""
    labels = [label.get("text") for b in buttons(message) if isinstance(label := b.get("text"), dict)]
    return [str(label) for label in labels if label != "Details"]


def payload_of(message: Json) -> Json:
    """What a message's metadata say of the entry that it draws; empty for messages without."""
    metadata = message.get("metadata")
    payload = metadata.get("event_payload") if isinstance(metadata, dict) else None
    return payload if isinstance(payload, dict) else {}


def change_of(message: Json) -> str:
    """The change that a message is about; empty for others."""
    return str(payload_of(message).get("change") or "")


def is_reply(message: Json) -> bool:
    """True for a message inside a thread."""
    return message.get("thread_ts") not in {None, message.get("ts")}


def _kind(entry: Json) -> str:
    event = entry["event"]
    return str(event["kind"]) if isinstance(event, dict) else ""
