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
from policies.errors import OpsError
from policies.facts import Incarnation, UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet
from workers.hosts import HOSTS_AT_ONCE
from workers.ledger import Ledger
from workers.look import InstanceValue, desired_of, value_of

if TYPE_CHECKING:
    from workers.wiring import Wiring

Value = str | int | float | None


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
    looks = []
    for instance, facts in units.items():
        knobs = [knob for knob in fleet.knobs.values() if facts.service in knob.on]
        values = {knob.name: value_of(knob, instance, facts, desired[knob.name]) for knob in knobs}
        left = _left(wiring.ledger, instance)
        found = [finding for name, value in values.items() for finding in _of_value(name, value)]
        found += _of_process(instance, facts, left)
        found += _of_build(fleet, instance, facts.service, builds)
        looks.append(
            InstanceLook(instance, facts.active_state, builds[instance], facts.incarnation, left, values, tuple(found))
        )
    return FleetLook(tuple(looks), unread)


def _observed(wiring: Wiring) -> tuple[dict[str, UnitFacts], dict[str, OpsError]]:
    """Facts by instance in the order of the fleet file, and the errors by host."""
    fleet = wiring.fleet
    by_host: dict[str, list[str]] = defaultdict(list)
    for service in fleet.services:
        for instance in fleet.instances(service):
            by_host[instance.split("@", 1)[1]].append(instance)
    variables = sorted({knob.env for knob in fleet.knobs.values()})

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


def _left(ledger: Ledger, instance: str) -> Incarnation | None:
    events = [entry.event for entry in ledger.index(f"boot:{instance}")]
    seen = [event.incarnation for event in events if isinstance(event, e.GatePassed) and event.incarnation is not None]
    return seen[-1] if seen else None


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
