"""A change with everything that its card and lines are drawn from, read from the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from bot.cards.story import Brought, Story, knob_of
from policies.events import Entry
from policies.evidence import Record
from policies.fleet import Fleet
from policies.intents import Deploy, Rollback


class Teller(Protocol):
    """What is read beside the change's own entries."""

    fleet: Fleet

    def evidence(self, knob: str | None = None) -> list[Record]:
        """Evidence records of a knob."""

    def brought(self, knob: str, before_seq: int) -> tuple[Entry, Entry] | None:
        """The knob's last change that succeeded before that place in the ledger."""

    def deployed(self, service: str, before_seq: int) -> tuple[Entry, Entry] | None:
        """The service's last deploy or rollback that succeeded before that place in the ledger."""


def story_of(door: Teller, entries: Sequence[Entry]) -> Story:
    """The story of one change, with the evidence about its knob and the knob's change before it."""
    story = Story.of(tuple(entries), fleet=door.fleet)
    asked = story.change.asked
    if asked is not None and isinstance(asked.intent, (Deploy, Rollback)):
        return replace(story, brought=Brought.of(door.deployed(asked.intent.service, story.planned_seq())))
    knob = knob_of(asked.intent) if asked else None
    if knob is None:
        return story
    brought = Brought.of(door.brought(knob, story.planned_seq()))
    return replace(story, records=tuple(door.evidence(knob)), brought=brought)
