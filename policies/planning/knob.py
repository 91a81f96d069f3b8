"""The plan of a knob change: for each restart order, the writes, restarts, gates and the undo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from policies.facts import UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet
from policies.plan import Estimate, FileState, GateKind, Plan, RestartStep, Step, WriteStep
from policies.planning.goal import Goal
from policies.planning.placement import Placement, effective_now, place
from policies.planning.steady import crash_looping, steady


@dataclass(frozen=True, slots=True)
class Planning:
    """Plans in the order offered; or, with no plans, findings.

    Those are refusals, with what is odd in the files of the units concerned, or why there is nothing to do.
    """

    plans: tuple[Plan, ...]
    findings: tuple[Finding, ...]


def plan_knob(
    fleet: Fleet,
    goal: Goal,
    facts: Mapping[str, UnitFacts],
    policy: tuple[Finding, ...],
    estimates: Mapping[str, Estimate],
    load: tuple[Finding, ...] = (),
) -> Planning:
    """Plans for `goal` from facts by instance (every instance of every order that is offered)."""
    placements: dict[str, Placement] = {}
    refusals: list[Finding] = []
    surprises: list[Finding] = []  # what is odd in the files of a unit whose place is refused
    for instance in goal.instances:
        found = place(facts[instance], goal.knob.env, goal.value)
        if isinstance(found, Finding):
            refusals.append(found)
            surprises += effective_now(facts[instance], goal.knob.env).warnings
        else:
            placements[instance] = found
    touched = dict.fromkeys((*goal.instances, *(i for order in goal.orders for i in _instances(fleet, order))))
    for name in touched:
        unit = facts[name]
        if unit.load_state != "loaded":
            values: dict[str, str | int | float | None] = {
                "instance": name,
                "unit": unit.unit,
                "load_state": unit.load_state,
            }
            refusals.append(Finding(code="plan.unit-not-loaded", effect="refuse", values=values))
    if refusals:
        return Planning((), (*refusals, *surprises))
    if all(_settled(facts[i], goal, placements[i]) for i in goal.instances):
        values = {"knob": goal.knob.name, "value": goal.value, "instances": ", ".join(goal.instances)}
        return Planning((), (Finding(code="plan.nothing-to-do", effect="note", values=values),))
    warnings = tuple(f for p in placements.values() for f in p.findings)
    plans = tuple(
        Plan(
            order=order,
            fleet_sha256=fleet.sha256,
            knob=goal.knob.name,
            value=goal.value,
            targets=tuple(placements[i].target for i in goal.instances),
            steps=_steps(fleet, goal, order, facts, placements),
            undo=_steps(fleet, goal, order, facts, {i: _reversed(p) for i, p in placements.items()}),
            files=_files(fleet, order, facts),
            incarnations=tuple((i, steady(facts[i])) for i in _instances(fleet, order)),
            policy=policy,
            warnings=(*goal.notes, *warnings, *_preflight(fleet, order, facts)),
            load=load,
            estimate=estimates.get(order),
        )
        for order in goal.orders
    )
    return Planning(plans, ())


def _settled(facts: UnitFacts, goal: Goal, placement: Placement) -> bool:
    """The files say it, and so does the process that runs."""
    if placement.target.now != goal.value or placement.before != placement.after:
        return False
    main = next((p for p in facts.processes if p.main and p.variable == goal.knob.env), None)
    if main is None:
        return False
    return main.answer == "absent" if goal.value is None else (main.answer, main.value) == ("present", goal.value)


def _instances(fleet: Fleet, order: str) -> tuple[str, ...]:
    return tuple(i for service in fleet.restarts[order] for i in fleet.instances(service))


def _steps(
    fleet: Fleet,
    goal: Goal,
    order: str,
    facts: Mapping[str, UnitFacts],
    placements: Mapping[str, Placement],
) -> tuple[Step, ...]:
    steps: list[Step] = []
    for instance in _instances(fleet, order):
        unit = facts[instance]
        placement = placements.get(instance)
        if placement is not None and placement.before != placement.after:
            steps.append(
                WriteStep(
                    host=unit.host,
                    service=unit.service,
                    unit=unit.unit,
                    path=unit.dropin_path,
                    before=placement.before,
                    text=placement.after,
                )
            )
        steps.append(_restart(fleet, goal, unit, changed=placement is not None))
    canaried = [s for s in fleet.services.values() if s.canary and reaches(fleet, s.name, fleet.restarts[order])]
    if canaried and isinstance(steps[-1], RestartStep):
        steps[-1] = steps[-1].model_copy(update={"gates": (*steps[-1].gates, "canary")})
    return tuple(steps)


def _restart(fleet: Fleet, goal: Goal, unit: UnitFacts, *, changed: bool) -> RestartStep:
    gates: tuple[GateKind, ...] = ("incarnation", "port", "health")
    if changed:
        gates = (*gates, "environment")
        if goal.knob.reported is not None and fleet.services[unit.service].server_info is not None:
            gates = (*gates, "reported")
    manager = ("--user",) if fleet.hosts[unit.host].manager == "user" else ()
    return RestartStep(
        host=unit.host,
        service=unit.service,
        unit=unit.unit,
        argv=("systemctl", *manager, "restart", "--no-block", unit.unit),
        before=steady(unit),
        changed=changed,
        gates=gates,
    )


def reaches(fleet: Fleet, service: str, touched: tuple[str, ...]) -> bool:
    """Whether the service is touched, or needs one that is, directly or through others."""
    return service in touched or any(reaches(fleet, need, touched) for need in fleet.services[service].needs)


def _reversed(placement: Placement) -> Placement:
    return Placement(placement.after, placement.before, placement.target, ())


def _files(fleet: Fleet, order: str, facts: Mapping[str, UnitFacts]) -> tuple[FileState, ...]:
    states: list[FileState] = []
    for instance in _instances(fleet, order):
        unit = facts[instance]
        read = (unit.fragment, *unit.dropins, *unit.env_files)
        states += [FileState(host=unit.host, path=f.path, sha256=f.sha256, mode=f.mode) for f in read]
        if all(f.path != unit.dropin_path for f in read):
            states.append(FileState(host=unit.host, path=unit.dropin_path, sha256=None, mode=None))
    return tuple(dict.fromkeys(states))


def _preflight(fleet: Fleet, order: str, facts: Mapping[str, UnitFacts]) -> tuple[Finding, ...]:
    """What is already wrong and would be blamed on the restart."""
    found: list[Finding] = []
    for instance in _instances(fleet, order):
        unit = facts[instance]
        values: dict[str, str | int | float | None] = {"instance": instance, "unit": unit.unit}
        if unit.active_state != "active":
            found.append(
                Finding(
                    code="plan.not-active-now",
                    effect="warn",
                    values={**values, "state": unit.active_state, "result": unit.result},
                )
            )
        elif crash_looping(unit):
            found.append(
                Finding(code="plan.crash-looping", effect="warn", values={**values, "restarts": unit.n_restarts})
            )
        boot_s = fleet.services[unit.service].health.boot_s
        if unit.type == "notify" and unit.timeout_start_s is not None and unit.timeout_start_s < boot_s:
            limits = {"timeout_start_s": unit.timeout_start_s, "boot_s": boot_s}
            found.append(Finding(code="plan.start-timeout-short", effect="warn", values={**values, **limits}))
    return tuple(found)
