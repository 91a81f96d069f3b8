"""Steps, files and preflight that every plan of restarts is made of, whatever it changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from policies.facts import UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet
from policies.plan import AdmitStep, FileState, GateKind, RestartStep, Step, WriteStep
from policies.planning.drains import admits, drains
from policies.planning.placement import Placement
from policies.planning.steady import steady
from policies.planning.waves import Stage

LIFE: tuple[GateKind, ...] = ("incarnation", "port", "health")


def instances_of(fleet: Fleet, order: str) -> tuple[str, ...]:
    """service@host of everything that a restart order of the fleet file restarts, in its order."""
    return tuple(i for service in fleet.restarts[order] for i in fleet.instances(service))


def steps(
    fleet: Fleet,
    stages: Sequence[Stage],
    facts: Mapping[str, UnitFacts],
    placements: Mapping[str, Placement],
    value_gates: Mapping[str, tuple[GateKind, ...]],
    *,
    undoing: bool = False,
) -> tuple[Step, ...]:
    """Writes and restarts, one stage after the other; the last gate is the canary where one reaches what is touched.

    placements: the drop-ins that change. value_gates: further gates of the instances whose value changes.
    """
    writes = {i: (write(facts[i], p),) for i, p in placements.items() if p.before != p.after}
    return in_turn(fleet, stages, facts, writes, value_gates, undoing=undoing)


def write(unit: UnitFacts, placement: Placement) -> WriteStep:
    """The write of one unit's drop-in."""
    return WriteStep(
        host=unit.host,
        service=unit.service,
        unit=unit.unit,
        path=unit.dropin_path,
        before=placement.before,
        text=placement.after,
    )


def in_turn(
    fleet: Fleet,
    stages: Sequence[Stage],
    facts: Mapping[str, UnitFacts],
    before: Mapping[str, tuple[Step, ...]],
    own_gates: Mapping[str, tuple[GateKind, ...]],
    *,
    undoing: bool = False,
) -> tuple[Step, ...]:
    """Of each stage drains, what is done before the restarts, the restarts, and what gives the drained back.

    own_gates: further gates of the instances in which something changes. The last gate of each wave is the canary.
    A router that is restarted forgets whom it was told of while it ran, so the drained are given back to it again.
    """
    made: list[Step] = []
    for number, wave in groupby(range(len(stages)), key=lambda index: stages[index].wave):
        here: list[Step] = []
        for index in wave:
            stage = stages[index]
            units = [facts[i] for i in stage.instances]
            here += drains(fleet, units)
            here += [step for i in stage.instances for step in before.get(i, ())]
            here += [_restart(fleet, facts[i], own_gates.get(i)) for i in stage.instances]
            here += admits(fleet, units)
            gone = _instances(stages if undoing else stages[:index])
            here += admits(fleet, [facts[i] for i in gone], stage.instances)
        made += (step.model_copy(update={"wave": number}) for step in _with_canary(fleet, here))
    return tuple(made)


def _instances(stages: Sequence[Stage]) -> list[str]:
    """Of all stages, service by service."""
    found = list(dict.fromkeys(i for stage in stages for i in stage.instances))
    services = list(dict.fromkeys(i.split("@")[0] for i in found))
    return sorted(found, key=lambda i: services.index(i.split("@")[0]))


def _with_canary(fleet: Fleet, steps: list[Step]) -> list[Step]:
    """The steps of a wave, with a canary behind the last one where a service that has one reaches what is touched."""
    touched = tuple(dict.fromkeys(step.service for step in steps))
    last = steps[-1]
    canaried = any(s.canary and reaches(fleet, s.name, touched) for s in fleet.services.values())
    if canaried and isinstance(last, (RestartStep, AdmitStep)):
        steps[-1] = last.model_copy(update={"gates": (*last.gates, "canary")})
    return steps


def _restart(fleet: Fleet, unit: UnitFacts, value_gates: tuple[GateKind, ...] | None) -> RestartStep:
    manager = ("--user",) if fleet.hosts[unit.host].manager == "user" else ()
    return RestartStep(
        host=unit.host,
        service=unit.service,
        unit=unit.unit,
        argv=("systemctl", *manager, "restart", "--no-block", unit.unit),
        before=steady(unit),
        changed=value_gates is not None,
        gates=(*LIFE, *(value_gates or ())),
    )


def reaches(fleet: Fleet, service: str, touched: tuple[str, ...]) -> bool:
    """Whether the service is touched, or needs one that is, directly or through others."""
    return service in touched or any(reaches(fleet, need, touched) for need in fleet.services[service].needs)


def files(instances: Sequence[str], facts: Mapping[str, UnitFacts]) -> tuple[FileState, ...]:
    """Every file that systemd reads for these units, and our drop-in where it does not exist yet."""
    states: list[FileState] = []
    for instance in instances:
        unit = facts[instance]
        read = (unit.fragment, *unit.dropins, *unit.env_files)
        states += [FileState(host=unit.host, path=f.path, sha256=f.sha256, mode=f.mode) for f in read]
        if all(f.path != unit.dropin_path for f in read):
            states.append(FileState(host=unit.host, path=unit.dropin_path, sha256=None, mode=None))
    return tuple(dict.fromkeys(states))


def not_loaded(instances: Sequence[str], facts: Mapping[str, UnitFacts]) -> list[Finding]:
    """Units that systemd cannot start."""
    return [
        Finding(
            code="plan.unit-not-loaded",
            effect="refuse",
            values={"instance": name, "unit": facts[name].unit, "load_state": facts[name].load_state},
        )
        for name in instances
        if facts[name].load_state != "loaded"
    ]
