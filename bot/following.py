"""Following a change from a terminal: its lines as they come, until it ends, is held, or needs somebody."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import JsonValue

from bot.cards.story import Story
from bot.messages import sentence
from bot.questions import Questions
from bot.terminal import plain
from bot.thread import line
from policies import events as e
from policies.change import Change, State
from policies.errors import NotFound, StoreUnavailable
from policies.finding import Finding

LOOK_S = 0.25
STORE_AWAY_S = 120.0  # Redis may be restarted meanwhile
GOOD: frozenset[State] = frozenset({"succeeded", "nothing_to_do"})


@dataclass(frozen=True, slots=True)
class Line:
    """One entry: `at` in epoch seconds, `text` plain; empty for what only leads on to the next."""

    seq: int
    at: float
    kind: str
    text: str


def settled(change: Change) -> bool:
    """Nothing more comes by itself: it ended, is held for a person, or was only a rehearsal of a plan."""
    dry = change.state == "planned" and change.planned is not None and change.planned.dry
    return change.ended or change.state == "held" or dry


def decided(change: Change) -> bool:
    """The hosts were read: there is a plan, a refusal, or nothing to do."""
    return change.state not in {"new", "asked"}


class Follower:
    """Reads one change again and again. `name_of` gives a name for a Slack user id."""

    def __init__(self, questions: Questions, change_id: str, name_of: Callable[[str], str]) -> None:
        self._questions = questions
        self._change_id = change_id
        self._name_of = name_of
        self._away_since: float | None = None

    def story(self) -> Story:
        """The change as it is recorded now.

        Raises: NotFound, StoreUnavailable.
        """
        found = self._questions.story(self._change_id)
        if found is None:
            raise NotFound(f"there is no change `{self._change_id}`", hint="`clawback status` lists the last ones")
        return found

    def until(
        self, enough: Callable[[Change], bool], seen: Callable[[Story], object], timeout_s: float | None = None
    ) -> Story:
        """Look until `enough`, or until `timeout_s` is over; `seen` gets every new state of the story.

        A store that is away is waited for. Raises: NotFound, StoreUnavailable when it stays away.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        version = -1
        while True:
            story = self._patient()
            if story is not None:
                if story.change.version != version:
                    version = story.change.version
                    seen(story)
                if enough(story.change) or (deadline is not None and time.monotonic() > deadline):
                    return story
            time.sleep(LOOK_S)

    def lines(self, story: Story) -> list[Line]:
        """Every entry with its line, in order."""
        return [
            Line(chapter.entry.seq, chapter.entry.at, chapter.entry.event.kind, self._told(chapter))
            for chapter in story.chapters()
        ]

    def events(self, story: Story) -> list[JsonValue]:
        """Every entry as JSON: seq, at, kind, text and the event itself."""
        told = zip(self.lines(story), story.entries, strict=True)
        return [
            {
                "seq": one.seq,
                "at": one.at,
                "kind": one.kind,
                "text": one.text,
                "event": entry.event.model_dump(mode="json"),
            }
            for one, entry in told
        ]

    def decision(self, story: Story, answer: Finding | None = None) -> JsonValue:
        """What was decided: `answer` is the finding of a word about the change; None: of the request itself."""
        change = story.change
        planned = change.planned
        findings: tuple[Finding, ...] = (answer,) if answer is not None else _findings(story)
        return {
            "answer": _answer(change, answer),
            "state": change.state,
            "findings": [
                {"code": f.code, "effect": f.effect, "message": plain(sentence(f), self._name_of)} for f in findings
            ],
            "approvals": planned.approvals if planned else None,
            "by": planned.by if planned else None,
            "expires_at": planned.expires_at if planned else None,
            "orders": [{"order": p.order, "digest": p.digest} for p in planned.plans] if planned else [],
        }

    def _told(self, chapter: Story) -> str:
        said = line(chapter)
        return plain(said, self._name_of) if said is not None else ""

    def _patient(self) -> Story | None:
        try:
            found = self.story()
        except StoreUnavailable:
            now = time.monotonic()
            self._away_since = self._away_since or now
            if now - self._away_since > STORE_AWAY_S:
                raise
            return None
        self._away_since = None
        return found


def _findings(story: Story) -> tuple[Finding, ...]:
    for entry in reversed(story.entries):
        if isinstance(entry.event, e.Planned | e.Refused | e.NothingToDo):
            return entry.event.findings
    return ()


def _answer(change: Change, answer: Finding | None) -> str:
    """allowed, needs_approval, refused, nothing_to_do, or pending while hosts are read."""
    if answer is not None:
        return "refused" if answer.effect == "refuse" else "allowed"
    if change.state in {"refused", "nothing_to_do"}:
        return change.state
    if change.planned is None:
        return "pending"
    return "needs_approval" if change.planned.approvals else "allowed"
