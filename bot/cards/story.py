"""What a card is drawn from: a change, its entries, the evidence about its knob and the fleet. Nothing else.

A card depends on recorded times only, never on the clock, so that drawing it again gives the same card.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

from policies.change import Change, apply, fold
from policies.events import Entry, GatePassed
from policies.evidence import Record
from policies.finding import Finding
from policies.fleet import Fleet
from policies.plan import Plan, Step, WriteStep

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Story:
    """A change with everything that is told about it. `records` are of the change's knob, oldest first."""

    change: Change
    entries: tuple[Entry, ...]
    records: tuple[Record, ...] = ()
    fleet: Fleet | None = None

    @classmethod
    def of(
        cls, entries: list[Entry] | tuple[Entry, ...], records: tuple[Record, ...] = (), fleet: Fleet | None = None
    ) -> Story:
        """The story that these entries of one change tell."""
        return cls(fold(entries[0].subject, entries), tuple(entries), records, fleet)

    def last(self, kind: type[E]) -> E | None:
        """The newest event of a kind since the change was last planned."""
        for entry in reversed(self.entries):
            if isinstance(entry.event, kind):
                return entry.event
        return None

    def canary(self) -> tuple[Finding, ...]:
        """What the last canary that passed on the way forward read."""
        for entry in reversed(self.entries):
            event = entry.event
            if isinstance(event, GatePassed) and event.gate == "canary" and event.part == "do":
                return event.verdict.findings
        return ()

    def chapters(self) -> list[Story]:
        """The story as it stood after each entry, in order."""
        told: list[Story] = []
        change = Change(self.change.id)
        for index, entry in enumerate(self.entries):
            change = apply(change, entry.event, entry.at)
            told.append(replace(self, change=change, entries=self.entries[: index + 1]))
        return told

    @property
    def entry(self) -> Entry:
        """The newest entry."""
        return self.entries[-1]

    def port(self, service: str) -> int | None:
        """The port that the service must own, where the fleet is at hand."""
        if self.fleet is None or service not in self.fleet.services:
            return None
        return self.fleet.services[service].health.port


def path(plan: Plan) -> str:
    """`prefill → decode → router`: what is restarted, in order. Hosts are named where a service has several."""
    restarts = [step for step in plan.steps if step.kind == "restart"]
    several = len({(s.service, s.host) for s in restarts}) > len({s.service for s in restarts})
    return " → ".join(instance(step) if several else step.service for step in restarts)


def instance(step: Step) -> str:
    """service@host."""
    return f"{step.service}@{step.host}"


def value_written(plan: Plan, step: WriteStep, *, undo: bool) -> tuple[str, str | None] | None:
    """(variable, value) that a write step brings about; None where the plan has no target there."""
    for target in plan.targets:
        if target.instance == instance(step):
            return target.variable, target.now if undo else target.then
    return None
