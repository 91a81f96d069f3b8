"""The plan of a knob change: for each restart order, the writes, restarts, gates and the undo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policies.aftermath.version import own_version
from policies.contracts import agreements, of_knob, one_sided
from policies.estimate import estimate
from policies.facts import UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet
from policies.plan import Agreement, GateKind, Plan, Target
from policies.planning.availability import all_away
from policies.planning.goal import Goal
from policies.planning.mixed import mixed
from policies.planning.placement import Placement, effective_now, place
from policies.planning.steady import steady
from policies.planning.steps import files, not_loaded, steps
from policies.planning.turns import Changing
from policies.planning.waves import Course, course, not_offered, restarted, unrolled
from policies.preflight import preflight, refused
from policies.preflight.managed import managed
from policies.states.state import State

UNSET = "unset"


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
    load: tuple[Finding, ...] = (),
    boots: Mapping[str, Sequence[float]] | None = None,
    states: Mapping[str, State] | None = None,
) -> Planning:
    """Plans for `goal` from facts by instance (every instance of every order that is offered).

    boots: recorded seconds by instance, oldest first. states: what engines do.
    """
    recorded = boots or {}
    placements: dict[str, Placement] = {}
    refusals: list[Finding] = []
    surprises: list[Finding] = []  # what is odd in the files of a unit whose place is refused
    for instance in goal.instances:
        found = place(facts[instance], goal.knob.variable(facts[instance].service), goal.value)
        if isinstance(found, Finding):
            refusals.append(found)
            surprises += effective_now(facts[instance], goal.knob.variable(facts[instance].service)).warnings
            surprises += managed(instance, facts[instance])
        else:
            placements[instance] = found
    settled = [i for i, p in placements.items() if _settled(facts[i], goal, p)]
    ways = {order: restarted(fleet, order, goal.instances, settled, facts) for order in goal.orders}
    touched = dict.fromkeys(i for way in ways.values() for i in way)
    refusals += not_loaded(tuple(touched), facts)
    if again := refused(fleet, tuple(touched), facts, recorded):
        refusals += again
        surprises += preflight(fleet, tuple(touched), facts, recorded)
    if (one := one_sided(fleet, goal.knob, goal.value, goal.instances, facts)) is not None:
        refusals.append(one)
    if refusals:
        return Planning((), (*refusals, *surprises))
    if len(settled) == len(goal.instances):
        values: dict[str, str | int | float | None] = {
            "knob": goal.knob.name,
            "value": goal.value,
            "instances": ", ".join(goal.instances),
        }
        return Planning((), (Finding(code="plan.nothing-to-do", effect="note", values=values),))
    other = {i: said for i in goal.instances if (said := _other_live(facts[i], placements[i].target))}
    contract = of_knob(fleet, goal.knob.name)
    together = contract.name if contract is not None else None
    about = Changing(goal.instances, settled, other, all_away(facts, facts), together)
    courses = {order: course(fleet, way, about) for order, way in ways.items()}
    now = {i: _runs(unit, goal.knob.variable(unit.service)) for i, unit in facts.items()}
    warnings = tuple(f for p in placements.values() for f in p.findings)
    warnings = (*(f for said in other.values() for f in said), *warnings)
    agreed = _agreements(fleet, goal, placements, facts)
    gates = {i: _value_gates(fleet, goal, facts[i], agreed) for i in goal.instances}
    backwards = {i: Placement(p.after, p.before, p.target, ()) for i, p in placements.items()}
    plans = tuple(
        Plan(
            order=order,
            fleet_sha256=fleet.sha256,
            knob=goal.knob.name,
            value=goal.value,
            targets=tuple(placements[i].target for i in goal.instances),
            steps=steps(fleet, way.do, facts, placements, gates),
            undo=steps(fleet, way.undo, facts, backwards, gates, undoing=True),
            files=files(ways[order], facts),
            incarnations=tuple((i, steady(facts[i])) for i in ways[order]),
            policy=policy,
            warnings=unique(
                (
                    *goal.notes,
                    *mixed(fleet, goal.instances, ways[order], now, goal.value or UNSET),
                    *way.warnings,
                    *not_offered(courses),
                    *preflight(fleet, ways[order], facts, recorded, goal.instances, states, reset=True),
                    *warnings,
                )
            ),
            load=load,
            versions=versions(ways[order], facts),
            estimate=estimate([stage.instances for stage in way.do], recorded),
            rolling=way.rolling,
            agreements=agreed,
        )
        for order, way in courses.items()
        if isinstance(way, Course)
    )
    return Planning(plans, () if plans else unrolled(courses))


def unique(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Each once, in order: what is odd in a file is seen by more than one look."""
    kept: list[Finding] = []
    for finding in findings:
        if finding not in kept:
            kept.append(finding)
    return tuple(kept)


def versions(instances: Sequence[str], facts: Mapping[str, UnitFacts]) -> tuple[tuple[str, str], ...]:
    """The build that each engine says it is."""
    said = ((i, own_version(facts[i])) for i in instances)
    return tuple((i, version) for i, version in said if version is not None)


def _settled(facts: UnitFacts, goal: Goal, placement: Placement) -> bool:
    """The files say it, and so does the process that runs."""
    if placement.target.now != goal.value or placement.before != placement.after:
        return False
    main = next((p for p in facts.processes if p.main and p.variable == placement.target.variable), None)
    if main is None:
        return False
    return main.answer == "absent" if goal.value is None else (main.answer, main.value) == ("present", goal.value)


def _runs(unit: UnitFacts, variable: str) -> str:
    """The value that the main process has; what the files give where that could not be read."""
    main = next((p for p in unit.processes if p.main and p.variable == variable), None)
    if main is None or main.answer not in {"present", "absent"}:
        return effective_now(unit, variable).value or UNSET
    return main.value or UNSET


def _other_live(unit: UnitFacts, target: Target) -> tuple[Finding, ...]:
    """The process that runs has another value than the files give: undoing goes back to what the files give."""
    main = next((p for p in unit.processes if p.main and p.variable == target.variable), None)
    if main is None or main.answer not in {"present", "absent"} or main.value == target.now:
        return ()
    values: dict[str, str | int | float | None] = {
        "instance": target.instance,
        "live": main.value,
        "configured": target.now,
        "pid": main.pid,
    }
    return (Finding(code="plan.live-differs", effect="warn", values=values),)


def _agreements(
    fleet: Fleet, goal: Goal, placements: Mapping[str, Placement], facts: Mapping[str, UnitFacts]
) -> tuple[Agreement, ...]:
    """What engines must report of a knob that is in a contract."""
    made: list[Agreement] = []
    for service in goal.knob.on:
        values = {i: (goal.value, placements[i].target.now) for i in goal.instances if facts[i].service == service}
        made += agreements(fleet, service, values, facts, goal.knob.name)
    return tuple(made)


def _value_gates(fleet: Fleet, goal: Goal, unit: UnitFacts, agreed: Sequence[Agreement] = ()) -> tuple[GateKind, ...]:
    reports = goal.knob.reported is not None and fleet.services[unit.service].server_info is not None
    gates: tuple[GateKind, ...] = ("environment", "reported") if reports else ("environment",)
    return (*gates, "contract") if any(one.instance == f"{unit.service}@{unit.host}" for one in agreed) else gates
