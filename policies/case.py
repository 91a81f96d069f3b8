"""A Case: everything that a rule may look at. Decisions are made on cases and on nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from policies.evidence import Record
from policies.fleet import Fleet, Knob, Rule
from policies.intents import Actor

IntentWord = Literal["set", "restore", "revert", "unset"]


@dataclass(frozen=True, slots=True)
class Case:
    """One intent as policy sees it.

    `intent` is the word that rules match on: a restore of a value that was never live is judged as a set.
    `value` None: the variable is to be taken away. `now` is epoch seconds.
    """

    intent: IntentWord
    actor: Actor
    fleet: Fleet
    knob: Knob
    value: str | None
    evidence: tuple[Record, ...]
    now: float

    @property
    def matching(self) -> tuple[Rule, ...]:
        """The rules of the fleet file that are about this case, in file order."""
        return tuple(rule for rule in self.fleet.rules if self._matches(rule))

    def _matches(self, rule: Rule) -> bool:
        match = rule.match
        return (
            match.kind in {None, "knob"}
            and match.intent in {None, self.intent}
            and match.knob in {None, self.knob.name}
            and (match.service is None or match.service in self.knob.on)
        )
