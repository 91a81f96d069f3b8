"""What is not as it was left: each instance's knobs, build and process against the ledger. Read only.

A host that cannot be asked is told as such and does not keep the others from being looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from policies import events as e
from policies.aftermath.version import own_version
from policies.contracts import mismatches
from policies.deploys.strategy import Variable
from policies.errors import OpsError
from policies.facts import Incarnation, UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet
from workers.deployed import deployed
from workers.hosts import HOSTS_AT_ONCE
from workers.ledger import Ledger
from workers.look import InstanceValue, desired_of, value_of
from workers.versions import Versions

if TYPE_CHECKING:
    from workers.wiring import Wiring

Value = str | int | float | None
CHANGES = 20  # looked through for the last restart of an instance; with none there nothing is claimed


@dataclass(frozen=True, slots=True)
class VersionLook:
    """The version of an instance: by its last deploy, by its link or variable, as it is read back. None: unknown."""

    desired: str | None
    configured: str | None
    live: str | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class InstanceLook:
    """One instance. `left`: its process as the ledger last saw it healthy; None: no restart of it is recorded.

    findings: `refuse` is drift, `note` is worth knowing and none.
    """

    instance: str
    active_state: str
    build: str | None
    incarnation: Incarnation
    left: Incarnation | None
    values: Mapping[str, InstanceValue]  # by knob
    version: VersionLook | None  # None: the service has no `deploy:`
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class FleetLook:
    """Every instance that could be looked at, and hosts that could not."""

    instances: tuple[InstanceLook, ...]
    unread: Mapping[str, OpsError]

    @property
    def drifted(self) -> bool:
        """Something is not as it was left."""
        return any(one.effect == "refuse" for look in self.instances for one in look.findings)


def fleet_drift(wiring: Wiring) -> FleetLook:
    """Look at the whole fleet, all hosts at once.

    Raises: StoreUnavailable.
    """
    fleet = wiring.fleet
    units, unread = _observed(wiring)
    desired = {name: desired_of(wiring.ledger, knob) for name, knob in fleet.knobs.items()}
    builds = {instance: own_version(facts) for instance, facts in units.items()}
    versions = _versions(wiring, units)
    broken = mismatches(fleet, units)
    looks = []
    for instance, facts in units.items():
        knobs = [knob.at(facts.service) for knob in fleet.knobs.values() if facts.service in knob.on]
        values = {knob.name: value_of(knob, instance, facts, desired[knob.name]) for knob in knobs}
        left = _left(wiring.ledger, wiring.fleet, instance)
        found = [finding for name, value in values.items() for finding in _of_value(name, value)]
        found += _of_process(instance, facts, left)
        found += _of_build(fleet, instance, facts.service, builds)
        found += _of_version(fleet, instance, versions.get(instance))
        found += [one.model_copy(update={"effect": "refuse"}) for one in broken if one.values["instance"] == instance]
        looks.append(
            InstanceLook(
                instance=instance,
                active_state=facts.active_state,
                build=builds[instance],
                incarnation=facts.incarnation,
                left=left,
                values=values,
                version=versions.get(instance),
                findings=tuple(found),
            )
        )
    return FleetLook(tuple(looks), unread)


def _observed(wiring: Wiring) -> tuple[dict[str, UnitFacts], dict[str, OpsError]]:
    """Facts by instance in the order of the fleet file, and the errors by host."""
    fleet = wiring.fleet
    by_host: dict[str, list[str]] = defaultdict(list)
    for service in fleet.services:
        for instance in fleet.instances(service):
            by_host[instance.split("@", 1)[1]].append(instance)
    strategies = [service.deploy.strategy for service in fleet.services.values() if service.deploy is not None]
    holding = {strategy.env for strategy in strategies if isinstance(strategy, Variable)}
    variables = sorted({name for knob in fleet.knobs.values() for name in knob.variables} | holding)

    def look(instances: Sequence[str]) -> dict[str, UnitFacts] | OpsError:
        try:
            return wiring.hosts.observe(instances, variables).units
        except OpsError as error:
            return error

    with ThreadPoolExecutor(min(HOSTS_AT_ONCE, max(1, len(by_host))), thread_name_prefix="drift") as pool:
        answers = dict(zip(by_host, pool.map(look, by_host.values()), strict=True))
    units = {i: facts for answer in answers.values() if isinstance(answer, dict) for i, facts in answer.items()}
    ordered = [i for service in fleet.services for i in fleet.instances(service) if i in units]
    return {i: units[i] for i in ordered}, {h: a for h, a in answers.items() if isinstance(a, OpsError)}


def _versions(wiring: Wiring, units: Mapping[str, UnitFacts]) -> dict[str, VersionLook]:
    """Versions of the services that can be deployed; of an instance that cannot be asked, why."""
    fleet, found = wiring.fleet, {}
    reader = Versions(fleet, wiring.hosts)
    for service in fleet.services.values():
        if service.deploy is None:
            continue
        desired = deployed(wiring.ledger, service.name)
        for instance in (i for i in fleet.instances(service.name) if i in units):
            try:
                seen = reader.seen((instance,), units, desired)[instance]
                said = seen.version
                found[instance] = VersionLook(desired.get(instance), seen.now, said.text, said.error or "")
            except OpsError as error:
                found[instance] = VersionLook(desired.get(instance), None, None, error.message)
    return found


def _left(ledger: Ledger, fleet: Fleet, instance: str) -> Incarnation | None:
    """The process that a change of ours found healthy last. Of replicas that boot side by side only one boot is timed,
    so the changes that restarted its siblings are looked through as well."""
    siblings = fleet.instances(instance.partition("@")[0])
    boots = sorted((entry for one in siblings for entry in ledger.index(f"boot:{one}")), key=lambda entry: -entry.seq)
    for change in tuple(dict.fromkeys(entry.subject for entry in boots))[:CHANGES]:
        for event in (entry.event for entry in reversed(ledger.entries(change))):
            if isinstance(event, e.GatePassed) and (event.gate, event.instance) == ("health", instance):
                return event.incarnation
    return None


def _of_value(knob: str, value: InstanceValue) -> list[Finding]:
    told: dict[str, Value] = {"instance": value.instance, "knob": knob, "configured": value.configured}
    found = []
    if value.managed and value.desired != value.configured:
        values = {**told, "desired": value.desired, "place": value.configured_by}
        found.append(Finding(code="drift.configured", effect="refuse", values=values))
    if value.live_answer in {"present", "absent"}:
        if value.live != value.configured:
            values = {**told, "live": value.live}
            found.append(Finding(code="drift.live", effect="refuse", values=values))
    elif value.live_answer != "no-process":
        values = {**told, "answer": value.live_answer}
        found.append(Finding(code="drift.live-unknown", effect="note", values=values))
    return found


def _of_process(instance: str, facts: UnitFacts, left: Incarnation | None) -> list[Finding]:
    found = []
    if facts.active_state != "active":
        values: dict[str, Value] = {"instance": instance, "unit": facts.unit, "state": facts.active_state}
        found.append(Finding(code="drift.not-active", effect="note", values=values))
    elif left is not None and left != facts.incarnation:
        values = {"instance": instance, "pid": facts.incarnation.main_pid, "was": left.main_pid}
        found.append(Finding(code="drift.other-process", effect="note", values=values))
    if facts.need_daemon_reload:
        values = {"instance": instance, "unit": facts.unit}
        found.append(Finding(code="drift.not-loaded", effect="note", values=values))
    return found


def _of_build(fleet: Fleet, instance: str, service: str, builds: Mapping[str, str | None]) -> list[Finding]:
    """Replicas of one service that answer with different builds: told at each but the first."""
    known = [(i, builds.get(i)) for i in fleet.instances(service) if builds.get(i) is not None]
    if not known or builds[instance] in {None, known[0][1]}:
        return []
    values: dict[str, Value] = {"instance": instance, "build": builds[instance]}
    values |= {"other": known[0][0], "other_build": known[0][1]}
    return [Finding(code="drift.builds", effect="refuse", values=values)]


def _of_version(fleet: Fleet, instance: str, look: VersionLook | None) -> list[Finding]:
    entry = fleet.services[instance.split("@", maxsplit=1)[0]].deploy
    if look is None or entry is None:
        return []
    told: dict[str, Value] = {"instance": instance, "configured": look.configured}
    found = []
    if look.desired is not None and look.configured not in {None, look.desired}:
        values = {**told, "desired": look.desired}
        found.append(Finding(code="drift.version-configured", effect="refuse", values=values))
    wanted = entry.version.of(look.configured) if look.configured is not None else None
    if look.live is None or look.configured is None:
        values = {"instance": instance, "why": look.error or "it is not told"}
        found.append(Finding(code="drift.version-unknown", effect="note", values=values))
    elif wanted is not None and look.live != wanted:
        values = {**told, "live": look.live}
        found.append(Finding(code="drift.version-live", effect="refuse", values=values))
    return found
