"""The plan of a restart that changes nothing: the same steps and gates, and nothing to undo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from policies.estimate import estimate
from policies.facts import UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet
from policies.intents import Restart
from policies.plan import Plan
from policies.planning.availability import all_away
from policies.planning.knob import Planning, versions
from policies.planning.steady import steady
from policies.planning.steps import files, instances_of, not_loaded, steps
from policies.planning.turns import Changing
from policies.planning.waves import Course, course
from policies.preflight import preflight, refused
from policies.states.state import State


@dataclass(frozen=True, slots=True)
class RestartGoal:
    """Which instances, in which order (service@host), under the name that a person sees."""

    order: str
    instances: tuple[str, ...]


def restart_goal(intent: Restart, fleet: Fleet) -> RestartGoal | Finding:
    """What a scope comes down to: a service, the services of a host, or one instance; sorted by what needs what.

    With an order (`via ORDER`) that whole order is restarted, and the scope must be in it; of a service that the scope
    names in part, only that part.
    """
    chosen = _chosen(intent.scope, fleet)
    if isinstance(chosen, Finding):
        return chosen
    if intent.order is None:
        return RestartGoal(intent.scope, tuple(sorted(chosen, key=lambda i: _depth(fleet, i.split("@")[0]))))
    if intent.order not in fleet.restarts:
        values: dict[str, str | int | float | None] = {"order": intent.order, "orders": ", ".join(fleet.restarts)}
        return Finding(code="plan.no-such-restart-order", effect="refuse", values=values)
    ordered = instances_of(fleet, intent.order)
    if not set(chosen) <= set(ordered):
        values = {"order": intent.order, "scope": intent.scope, "services": ", ".join(fleet.restarts[intent.order])}
        return Finding(code="plan.scope-not-in-order", effect="refuse", values=values)
    services = {i.split("@")[0] for i in chosen}
    return RestartGoal(intent.order, tuple(i for i in ordered if i in chosen or i.split("@")[0] not in services))


def _chosen(scope: str, fleet: Fleet) -> tuple[str, ...] | Finding:
    everywhere = tuple(i for service in fleet.services for i in fleet.instances(service))
    if scope in fleet.services and scope in fleet.hosts:
        return Finding(code="plan.scope-is-two-things", effect="refuse", values={"scope": scope})
    chosen = tuple(i for i in everywhere if scope in {i, *i.split("@", 1)})
    if not chosen:
        known = ", ".join((*fleet.services, *fleet.hosts))
        return Finding(code="plan.no-such-scope", effect="refuse", values={"scope": scope, "known": known})
    return chosen


def _depth(fleet: Fleet, service: str) -> int:
    """0 for a service that needs nothing, else one more than the deepest that it needs."""
    return max((_depth(fleet, need) + 1 for need in fleet.services[service].needs), default=0)


def plan_restart(
    fleet: Fleet,
    goal: RestartGoal,
    facts: Mapping[str, UnitFacts],
    policy: tuple[Finding, ...],
    boots: Mapping[str, Sequence[float]] | None = None,
    states: Mapping[str, State] | None = None,
    anyway: str | None = None,
) -> Planning:
    """The one plan, or why a unit cannot be restarted.

    facts: of the goal's instances, and of the other replicas of their services as far as they could be asked.
    boots: recorded seconds by instance, oldest first. states: what engines do. anyway: who asked for it whatever
    they do.
    """
    recorded = boots or {}
    warnings = preflight(fleet, goal.instances, facts, recorded, states=states, anyway=anyway)
    refusals = [
        *not_loaded(goal.instances, facts),
        *refused(fleet, goal.instances, facts, recorded, states=states, anyway=anyway),
    ]
    if refusals:
        return Planning((), (*refusals, *warnings))
    way = course(fleet, goal.instances, Changing(away=all_away(facts, facts)))
    if not isinstance(way, Course):
        return Planning((), (*way, *warnings))
    plan = Plan(
        order=goal.order,
        fleet_sha256=fleet.sha256,
        knob=None,
        value=None,
        targets=(),
        steps=steps(fleet, way.do, facts, {}, {}),
        undo=(),
        files=files(goal.instances, facts),
        incarnations=tuple((i, steady(facts[i])) for i in goal.instances),
        policy=policy,
        warnings=(*way.warnings, *warnings),
        versions=versions(goal.instances, facts),
        estimate=estimate([stage.instances for stage in way.do], recorded),
        rolling=way.rolling,
    )
    return Planning((plan,), ())
