"""What became of a change: when it came into force, when it was taken back, and what else changed meanwhile."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from policies import events as e
from policies.change import Change
from policies.plan import Plan

if TYPE_CHECKING:
    from workers.wiring import Wiring

RECENT = 200  # changes that are looked through for others


@dataclass(frozen=True, slots=True)
class Course:
    """A change that was in force from `since` on. Units: epoch seconds.

    undone_by: the change that took it back, itself when it was rolled back; None: it is in force. leaving: when that
    began. gone: when the old state was there again.
    """

    change: Change
    began: float
    since: float
    undone_by: str | None = None
    leaving: float | None = None
    gone: float | None = None


class Courses:
    """Reads the ledger and what the watch has seen. Raises everywhere: StoreUnavailable."""

    def __init__(self, wiring: Wiring) -> None:
        self._w = wiring

    def last(self, before: float, without: Collection[str] = ()) -> str | None:
        """The newest change that was begun before that moment; None where none was."""
        for entry in reversed(self._w.ledger.index("changes")[-RECENT:]):
            change = self._w.ledger.load(entry.subject)
            if change.id not in without and 0 < change.started_at < before:
                return change.id
        return None

    def of(self, change: Change) -> Course | None:
        """The course of a change; None for one that did not come into force, or has not yet."""
        entries = self._w.ledger.entries(change.id)
        since = _in_force(entries)
        if since is None or not change.started_at:
            return None
        back = next((x.at for x in entries if isinstance(x.event, e.UndoStarted | e.UndoAsked)), None)
        if back is not None:
            gone = change.ended_at if change.state in {"rolled_back", "aborted"} else None
            return Course(change, change.started_at, since, change.id, back, gone)
        if change.state == "succeeded" and change.plan is not None:
            later = self._taken_back(change, change.plan)
            if later is not None:
                again = _in_force(self._w.ledger.entries(later.id))
                return Course(change, change.started_at, since, later.id, later.started_at, again)
        return Course(change, change.started_at, since)

    def takes_back(self, later: Change) -> Course | None:
        """The course of the change whose old state `later` brought back, itself when it was rolled back."""
        plan = later.plan
        if plan is None:
            return None
        if later.state == "rolled_back":
            return self.of(later)
        for entry in reversed(self._w.ledger.index(_index(plan) or "")):
            if entry.subject == later.id:
                continue
            course = self.of(self._w.ledger.load(entry.subject))
            if course is not None and course.undone_by == later.id:
                return course
        return None

    def others(self, start: float, end: float, without: Collection[str]) -> tuple[str, ...] | None:
        """What else changed in that time; None where the watch has not looked at everything since it began.

        Changes by their ids, and what the watch found beside them by its own.
        """
        seen = self._w.client.changed(end).seen
        if any(snapshot is None or snapshot.at < start for snapshot in seen.values()):
            return None
        found: list[str] = []
        for entry in self._w.ledger.index("changes")[-RECENT:]:
            change = self._w.ledger.load(entry.subject)
            ran = 0 < change.started_at < end and (change.ended_at is None or change.ended_at > start)
            if ran and change.id not in without:
                found.append(change.id)
        for entry in self._w.ledger.index("outside"):
            event = entry.event
            if isinstance(event, e.OutsideSeen) and event.since < end and event.seen_at > start:
                found.append(f"{entry.subject} on {event.instance}")
        return tuple(found)

    def quiet_since(self, moment: float, without: Collection[str]) -> float:
        """When the last other change before that moment had ended; 0 where there was none."""
        ended = [0.0]
        for entry in self._w.ledger.index("changes")[-RECENT:]:
            change = self._w.ledger.load(entry.subject)
            if change.started_at and change.id not in without and change.ended_at and change.ended_at < moment:
                ended.append(change.ended_at)
        outside = (x.event for x in self._w.ledger.index("outside") if isinstance(x.event, e.OutsideSeen))
        return max(*ended, *(event.seen_at for event in outside if event.seen_at < moment), 0.0)

    def watched_since(self, moment: float) -> bool:
        """Whether the watch has looked at every instance after that moment."""
        seen = self._w.client.changed(moment).seen
        return all(snapshot is not None and snapshot.at >= moment for snapshot in seen.values())

    def _taken_back(self, change: Change, plan: Plan) -> Change | None:
        """The first later change that left what was there before."""
        was, then = {t.instance: t.now for t in plan.targets}, {t.instance: t.then for t in plan.targets}
        index = _index(plan)
        if index is None or not was or was == then:
            return None
        own = next((x.seq for x in self._w.ledger.index(index) if x.subject == change.id), None)
        now = dict(then)
        for entry in self._w.ledger.index(index):
            if own is None or entry.seq <= own or not isinstance(entry.event, e.Succeeded):
                continue
            now |= {i: value for i, value in entry.event.now.items() if i in was}
            if now == was:
                return self._w.ledger.load(entry.subject)
        return None


def _in_force(entries: list[e.Entry]) -> float | None:
    """When the last of its own steps and gates was through; None where none was."""
    found = None
    for entry in entries:
        event = entry.event
        if isinstance(event, e.UndoStarted | e.UndoAsked):
            break
        if isinstance(event, e.Succeeded) and found is None:
            found = entry.at
        if isinstance(event, e.BakeStarted) or (isinstance(event, e.StepDone | e.GatePassed) and event.part == "do"):
            found = entry.at
    return found


def _index(plan: Plan) -> str | None:
    """The list of successes of what a plan changes; None for a restart that changes nothing."""
    if plan.knob is not None:
        return f"knob:{plan.knob}"
    return f"version:{plan.deploy.service}" if plan.deploy is not None else None
