"""Subjects beside changes: how they are named, which event they begin with, and what may follow.

A change has a life of its own (`policies.change`). Everything else that is recorded is listed here, so that the ledger
and its audit judge all of it alike.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from policies.events.entry import Event
from policies.events.records import EvidenceRecorded
from policies.events.truth import StatementMade

Place = Literal["first", "later", "any"]


@dataclass(frozen=True, slots=True)
class Aside:
    """An event that is about no change. `prefix` of its subject's name: `ab` for `ab-7`. `place` among its entries."""

    prefix: str
    place: Place


ASIDE: dict[str, Aside] = {
    "evidence_recorded": Aside("ab", "first"),
    "suspicion_reminded": Aside("su", "any"),
    **dict.fromkeys(("silence_made", "silence_prolonged", "silence_ended", "silence_failed"), Aside("si", "any")),
    "drift_seen": Aside("dr", "any"),
    "outside_seen": Aside("out", "first"),
    "locked": Aside("lk", "first"),
    "unlocked": Aside("lk", "later"),
    "confirmed": Aside("rl", "first"),
    "statement_made": Aside("st", "first"),
    "statement_disputed": Aside("st", "later"),
    "statement_judged_again": Aside("st", "later"),
}


def tells_change(kind: str) -> bool:
    """Whether an event of this kind belongs to a change."""
    return kind not in ASIDE


def misplaced(subject: str, event: Event, before: int) -> str | None:
    """Why an event cannot stand behind `before` entries of that subject; None when it can, or tells a change."""
    aside = ASIDE.get(event.kind)
    if aside is None:
        return None
    own = _own_name(event)
    if own is not None and own != subject:
        return f"`{own}` is recorded once, under its own name, not as `{subject}`"
    if not re.fullmatch(rf"{aside.prefix}-[1-9][0-9]*", subject):
        return f"`{event.kind}` is recorded under a name like `{aside.prefix}-7`, not as `{subject}`"
    if aside.place == "first" and before:
        return f"`{event.kind}` is recorded once, and {subject} has {before} entries already"
    if aside.place == "later" and not before:
        return f"`{event.kind}` cannot be the first that is recorded of {subject}"
    return None


def _own_name(event: Event) -> str | None:
    """The name that an event itself carries."""
    if isinstance(event, EvidenceRecorded):
        return event.record.id
    return event.statement.id if isinstance(event, StatementMade) else None
