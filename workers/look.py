"""Looking without changing: verify a knob, list knobs, show one. Read-only answers for the bot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from policies import events as e
from policies.aftermath.journal import about
from policies.applicability import Standing
from policies.contracts import mismatches, of_knob
from policies.errors import NotFound
from policies.evidence import Record
from policies.facts import UnitFacts
from policies.finding import Finding
from policies.fleet import Knob
from policies.inert import reads
from policies.planning.placement import effective_now
from policies.proof import Proof
from workers.aims import Aim, prove
from workers.executors.answers import LogAsk
from workers.ledger import Ledger
from workers.truth import Truth

if TYPE_CHECKING:
    from workers.wiring import Wiring

LOG_LINES = 200


@dataclass(frozen=True, slots=True)
class InstanceValue:
    """One knob on one instance. `desired` is of the last succeeded change; `managed` False: there is none."""

    instance: str
    managed: bool
    desired: str | None
    configured: str | None
    configured_by: str | None  # "path:line"
    live: str | None
    live_answer: str  # present, absent, unreadable, forbidden, vanished, or no-process

    @property
    def drift(self) -> bool:
        """Desired, configured and live do not agree, as far as each is known."""
        live_known = self.live_answer in {"present", "absent"}
        return (live_known and self.live != self.configured) or (self.managed and self.desired != self.configured)


@dataclass(frozen=True, slots=True)
class KnobLook:
    """One knob with its values and its evidence."""

    knob: Knob
    values: tuple[InstanceValue, ...]
    evidence: tuple[Record, ...]
    standings: tuple[Standing, ...] = ()  # what the records are worth today, where that was asked
    contracts: tuple[Finding, ...] = ()  # those that do not hold


@dataclass(frozen=True, slots=True)
class VerifyLook:
    """The proof ladder of one knob on every instance. What is wanted is the desired value, else the configured one."""

    knob: Knob
    at: float
    proofs: tuple[Proof, ...]
    health: dict[str, int | None]  # status by instance


class Looks:
    """Questions about the fleet.

    Raises in every method: NotFound for an unknown knob or scope, HostUnreachable, HostAnswerLost.
    """

    def __init__(self, wiring: Wiring) -> None:
        self._w = wiring

    def verify(self, name: str) -> VerifyLook:
        """Look at every process of every instance of the knob."""
        knob = self._knob(name)
        units = self._observe((knob,))
        desired = desired_of(self._w.ledger, knob)
        path = knob.reported.path if knob.reported else None
        proofs: list[Proof] = []
        for instance in self._instances(knob):
            facts = units[instance]
            variable = knob.variable(facts.service)
            wanted = desired[instance] if instance in desired else effective_now(facts, variable).value
            proofs.append(_with_inert(knob, facts, prove(facts, Aim(variable, wanted, path))))
        proofs = self._with_log(knob, proofs)
        health = {i: next((a.status for a in units[i].http if a.id == "health"), None) for i in self._instances(knob)}
        return VerifyLook(knob, self._w.clock(), tuple(proofs), health)

    def _with_log(self, knob: Knob, proofs: list[Proof]) -> list[Proof]:
        """Where a value is not live, with the line in which the engine says why it took another."""
        lacking = [proof.instance for proof in proofs if proof.verdict != "live"]
        if not lacking:
            return proofs
        units = self._w.hosts.observe(lacking, [*knob.variables], log=LogAsk(LOG_LINES)).units
        told = []
        for proof in proofs:
            facts = units.get(proof.instance)
            log = facts.log if facts is not None else None
            said = about(proof.instance, log, proof.variable, "proof.log-about")
            more = proof.model_copy(update={"findings": (*proof.findings, *said)})
            told.append(more if facts is None else _with_inert(knob, facts, more))
        return told

    def list_knobs(self, scope: str | None = None) -> tuple[KnobLook, ...]:
        """Every knob, or those on a service, a host or a service@host."""
        fleet = self._w.fleet
        known = {*fleet.services, *fleet.hosts, *(i for s in fleet.services for i in fleet.instances(s))}
        if scope is not None and scope not in known:
            raise NotFound(f"`{scope}` is no service, host or service@host", hint="known: " + ", ".join(sorted(known)))
        knobs = tuple(fleet.knobs.values())
        units = self._observe(knobs)
        looks = (self._look(knob, units, scope) for knob in knobs)
        return tuple(look for look in looks if look.values)

    def show(self, name: str) -> KnobLook:
        """One knob, and whether its evidence holds today."""
        knob = self._knob(name)
        contexts = self._w.contexts
        units = contexts.look(knob)
        found = self._look(knob, units, None)
        return replace(found, standings=contexts.of(knob, found.evidence, units))

    def standings(self, name: str) -> tuple[Standing, ...]:
        """What the records of a knob are worth today."""
        knob = self._knob(name)
        return self._w.contexts.of(knob, self._w.client.evidence(knob.name))

    @cached_property
    def truth(self) -> Truth:
        """Statements about causes, judged on what was measured."""
        return Truth(self._w, self._w.measuring)

    def _knob(self, name: str) -> Knob:
        knob = self._w.fleet.knobs.get(name)
        if knob is None:
            raise NotFound(f"there is no knob `{name}`", hint="known: " + ", ".join(self._w.fleet.knobs))
        return knob

    def _instances(self, knob: Knob) -> tuple[str, ...]:
        return tuple(i for service in knob.on for i in self._w.fleet.instances(service))

    def _observe(self, knobs: tuple[Knob, ...]) -> dict[str, UnitFacts]:
        instances = list(dict.fromkeys(i for knob in knobs for i in self._instances(knob)))
        return self._w.hosts.observe(instances, [name for knob in knobs for name in knob.variables]).units

    def _look(self, knob: Knob, units: dict[str, UnitFacts], scope: str | None) -> KnobLook:
        desired = desired_of(self._w.ledger, knob)
        values: list[InstanceValue] = []
        for instance in self._instances(knob):
            if scope is not None and scope not in {instance, *instance.split("@", 1)}:
                continue
            values.append(value_of(knob, instance, units[instance], desired))
        contract = of_knob(self._w.fleet, knob.name)
        broken = mismatches(self._w.fleet, units) if contract is not None and values else ()
        mine = tuple(one for one in broken if contract is not None and one.values["contract"] == contract.name)
        return KnobLook(knob, tuple(values), tuple(self._w.client.evidence(knob.name)), contracts=mine)


def _with_inert(knob: Knob, facts: UnitFacts, proof: Proof) -> Proof:
    """The proof, and beside it that the running build does not read the variable, where it shows that."""
    found = reads(knob, [facts])
    if found.answer != "no" or any(f.code == "applies.inert" for f in proof.findings):
        return proof
    values: dict[str, str | int | float | None] = {"variable": knob.variable(facts.service), "why": found.why}
    inert = Finding(code="applies.inert", effect="warn", values=values)
    return proof.model_copy(update={"findings": (*proof.findings, inert)})


def desired_of(ledger: Ledger, knob: Knob) -> dict[str, str | None]:
    """The value that the last succeeded change brought, by instance; an instance without one is left out."""
    desired: dict[str, str | None] = {}
    for entry in ledger.index(f"knob:{knob.name}"):
        if isinstance(entry.event, e.Succeeded):
            desired |= entry.event.now
    return desired


def value_of(knob: Knob, instance: str, facts: UnitFacts, desired: Mapping[str, str | None]) -> InstanceValue:
    """Desired, configured and live value of a knob on one instance."""
    variable = knob.variable(facts.service)
    found = effective_now(facts, variable)
    main = next((p for p in facts.processes if p.main and p.variable == variable), None)
    place = found.decided_by
    return InstanceValue(
        instance=instance,
        managed=instance in desired,
        desired=desired.get(instance),
        configured=found.value,
        configured_by=f"{place.file}:{place.line}" if place else None,
        live=main.value if main else None,
        live_answer=main.answer if main else "no-process",
    )
