"""A Case: everything that a rule may look at. Decisions are made on cases and on nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from policies.applicability import Standing
from policies.evidence import Record
from policies.finding import Finding
from policies.fleet import Fleet, Knob, Rule
from policies.intents import Actor, Intent

IntentWord = Literal["set", "restore", "revert", "unset", "restart", "deploy", "rollback"]


@dataclass(frozen=True, slots=True)
class Case:
    """One intent as policy sees it.

    `intent` is the word that rules match on: a restore of a value that was never live is judged as a set.
    `knob` None: services are deployed or restarted. `services` are those of the knob, or those deployed or restarted.
    `value` None: the variable is to be taken away, or there is none. `now` is epoch seconds.
    `standings` is what each record is worth today, by its id; one that is not there is weak. `reason`: what was said.
    `emergency`: it was asked for as one. `locks`: what rollbacks left on what is deployed.
    `ticket`: what it is done for.
    """

    intent: IntentWord
    actor: Actor
    fleet: Fleet
    knob: Knob | None
    services: tuple[str, ...]
    value: str | None
    evidence: tuple[Record, ...]
    now: float
    standings: Mapping[str, Standing] = field(default_factory=dict)
    reason: str | None = None
    emergency: bool = False
    locks: tuple[Finding, ...] = ()
    ticket: str | None = None

    def said(self, intent: Intent) -> Case:
        """The same with what was said beside what is wanted."""
        return replace(self, reason=intent.because, ticket=intent.ticket, emergency=intent.emergency)

    @property
    def subject(self) -> str:
        """What the case is about, for a sentence."""
        return self.knob.name if self.knob is not None else ", ".join(self.services)

    @property
    def matching(self) -> tuple[Rule, ...]:
        """The rules of the fleet file that are about this case, in file order."""
        return tuple(rule for rule in self.fleet.rules if self._matches(rule))

    def _matches(self, rule: Rule) -> bool:
        match = rule.match
        kinds = {None, "knob"} if self.knob is not None else {None, "deploy"}
        if self.intent == "restart":
            kinds = {*kinds, "restart"}
        return (
            match.kind in kinds
            and match.intent in {None, self.intent}
            and match.knob in {None, self.knob.name if self.knob is not None else None}
            and (match.service is None or match.service in self.services)
        )
