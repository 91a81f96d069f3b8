"""What a card is drawn from: a change, its entries, the evidence about its knob and the fleet. Nothing else.

A card depends on recorded times only, never on the clock, so that drawing it again gives the same card.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from bot.markup import Markup
from bot.messages import say
from policies.change import Change, apply, fold
from policies.events import Asked, Entry, GatePassed, Succeeded
from policies.evidence import Record
from policies.finding import Finding
from policies.fleet import Fleet
from policies.intents import Deploy, Intent, Restart, Rollback
from policies.plan import Plan, Step, WriteStep
from policies.probe import Probe

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Brought:
    """The earlier change that gave the knob, or the service, what it has: how it was asked, how it ended, and when."""

    change_id: str
    asked: Asked
    succeeded: Succeeded
    at: float

    @classmethod
    def of(cls, found: tuple[Entry, Entry] | None) -> Brought | None:
        """From its first and its last entry."""
        if found is None:
            return None
        first, last = found
        if not isinstance(first.event, Asked) or not isinstance(last.event, Succeeded):
            return None
        return cls(last.subject, first.event, last.event, last.at)


@dataclass(frozen=True, slots=True)
class Story:
    """A change with everything that is told about it.

    records: of the change's knob, oldest first. brought: the knob's last change before this one was planned.
    groups: handle -> id of the workspace's user groups, as far as they were needed and could be read.
    """

    change: Change
    entries: tuple[Entry, ...]
    records: tuple[Record, ...] = ()
    fleet: Fleet | None = None
    brought: Brought | None = None
    groups: Mapping[str, str] = field(default_factory=dict)

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

    def probe(self) -> Probe | None:
        """The measurement of that canary, where there is one."""
        for entry in reversed(self.entries):
            event = entry.event
            if isinstance(event, GatePassed) and event.gate == "canary" and event.part == "do":
                return event.probe
        return None

    def chapters(self) -> list[Story]:
        """The story as it stood after each entry, in order."""
        told: list[Story] = []
        change = Change(self.change.id)
        for index, entry in enumerate(self.entries):
            change = apply(change, entry.event, entry.at)
            told.append(replace(self, change=change, entries=self.entries[: index + 1]))
        return told

    def planned_seq(self) -> int:
        """Ledger place of the newest plan, or of the end of the story where there is none."""
        for entry in reversed(self.entries):
            if entry.event.kind == "planned":
                return entry.seq
        return self.entries[-1].seq

    @property
    def last_at(self) -> float:
        """When the last thing happened that was no refused click."""
        told = [entry.at for entry in self.entries if entry.event.kind != "click_refused"]
        return told[-1] if told else self.entry.at

    @property
    def entry(self) -> Entry:
        """The newest entry."""
        return self.entries[-1]

    def port(self, service: str) -> int | None:
        """The port that the service must own, where the fleet is at hand."""
        if self.fleet is None or service not in self.fleet.services:
            return None
        return self.fleet.services[service].health.port


def knob_of(intent: Intent) -> str | None:
    """The knob that an intent is about; None for one that changes no value."""
    return None if isinstance(intent, (Restart, Deploy, Rollback)) else intent.knob


def path(plan: Plan) -> str:
    """`prefill → 3 decode → router`: what is restarted, how many of each; one of several replicas by its own name."""
    by_service: dict[str, list[str]] = {}
    for step in plan.steps:
        if step.kind == "restart":
            by_service.setdefault(step.service, []).append(instance(step))
    replicas = {one.service for one in plan.rolling}

    def name(service: str, names: list[str]) -> str:
        if len(names) > 1:
            return f"{len(names)} {service}"
        return names[0] if service in replicas else service

    return " → ".join(name(service, names) for service, names in by_service.items())


def order_said(plan: Plan) -> Markup:
    """`co-restart (prefill → decode → router)`; a restart of one service is named once."""
    told = path(plan)
    if told == plan.order:
        return say("step.order-alone", order=told)
    return say("step.order", order=plan.order, path=told)


def instance(step: Step) -> str:
    """service@host."""
    return f"{step.service}@{step.host}"


def named(plan: Plan | None, where: str) -> str:
    """An instance as people call it: by its service alone where that has no replicas."""
    service, _, host = where.partition("@")
    if plan is None:
        return service
    several = any(one.service == service for one in plan.rolling)
    return where if several or any(s.service == service and s.host != host for s in plan.steps) else service


def value_written(plan: Plan, step: WriteStep, *, undo: bool) -> tuple[str, str | None] | None:
    """(variable, value) that a write step brings about; None where the plan has no target there."""
    for target in plan.targets:
        if target.instance == instance(step):
            return target.variable, target.now if undo else target.then
    return None
