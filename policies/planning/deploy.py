"""The plan of a deploy or rollback: for each restart order the switch, write or command of each instance before its
restart, the gates, the way back, and what is taken away when all is well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policies.deploys.goal import DeployGoal
from policies.deploys.history import Deployment, good, standing_of
from policies.deploys.outlook import candidates, outlook
from policies.deploys.seen import Seen
from policies.deploys.strategy import Releases
from policies.facts import UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet
from policies.plan import DeployPlan, Estimate, Plan, PruneStep, Step
from policies.planning.knob import Planning, unique, versions
from policies.planning.moves import Move, move
from policies.planning.steady import steady
from policies.planning.steps import files, in_turn, instances_of, not_loaded
from policies.preflight import preflight, refused
from policies.states.state import State

Values = dict[str, str | int | float | None]
MOST_SAID = 400  # characters of what a release says of itself


def plan_deploy(
    fleet: Fleet,
    goal: DeployGoal,
    facts: Mapping[str, UnitFacts],
    seen: Mapping[str, Seen],
    history: Sequence[Deployment],
    policy: tuple[Finding, ...],
    estimates: Mapping[str, Estimate],
    boots: Mapping[str, Sequence[float]] | None = None,
    states: Mapping[str, State] | None = None,
) -> Planning:
    """Plans for `goal`, or why there is none.

    facts: every instance of every order offered. seen: the goal's instances. history: newest first.
    boots: recorded seconds by instance, oldest first. states: what engines do.
    """
    recorded = boots or {}
    moves: dict[str, Move] = {}
    refusals: list[Finding] = []
    for instance in goal.instances:
        found = move(goal, facts[instance], seen[instance])
        if isinstance(found, Move):
            moves[instance] = found
        else:
            refusals += found
    touched = dict.fromkeys((*goal.instances, *(i for order in goal.orders for i in instances_of(fleet, order))))
    refusals += [*_differ(goal, seen), *not_loaded(tuple(touched), facts)]
    refusals += refused(fleet, tuple(touched), facts, recorded)
    if refusals:
        return Planning((), tuple(refusals))
    if all(one.settled for one in moves.values()):
        values: Values = {"service": goal.service, "ref": goal.ref, "instances": ", ".join(goal.instances)}
        return Planning((), (Finding(code="deploy.nothing-to-do", effect="note", values=values),))
    warnings = (
        *_marked(goal, history),
        *_only_restarted(goal, moves),
        *(f for m in moves.values() for f in m.findings),
    )
    plans = tuple(
        _plan(fleet, goal, order, facts, seen, history, moves).model_copy(
            update={
                "policy": policy,
                "estimate": estimates.get(order),
                "warnings": unique(
                    (
                        *warnings,
                        *preflight(
                            fleet, instances_of(fleet, order), facts, recorded, goal.instances, states, reset=True
                        ),
                    )
                ),
            }
        )
        for order in goal.orders
    )
    return Planning(plans, ())


def _plan(
    fleet: Fleet,
    goal: DeployGoal,
    order: str,
    facts: Mapping[str, UnitFacts],
    seen: Mapping[str, Seen],
    history: Sequence[Deployment],
    moves: Mapping[str, Move],
) -> Plan:
    instances = instances_of(fleet, order)
    do = in_turn(fleet, instances, facts, {i: m.do for i, m in moves.items()}, {i: m.gates for i, m in moves.items()})
    undo: tuple[Step, ...] = ()
    if all(one.undo is not None for one in moves.values()) and any(one.do for one in moves.values()):
        back = {i: m.undo or () for i, m in moves.items()}
        undo = in_turn(fleet, instances, facts, back, {i: m.undo_gates for i, m in moves.items()})
    first = moves[goal.instances[0]]
    return Plan(
        order=order,
        fleet_sha256=fleet.sha256,
        knob=None,
        value=None,
        targets=tuple(moves[i].target for i in goal.instances),
        steps=(*do, *_prunes(goal, facts, history, moves)),
        undo=undo,
        files=(*files(instances, facts), *(m.manifest for m in moves.values() if m.manifest is not None)),
        incarnations=tuple((i, steady(facts[i])) for i in instances),
        policy=(),
        versions=versions([i for i in instances if i not in moves], facts),
        deploy=DeployPlan(
            word=goal.word,
            service=goal.service,
            ref=goal.ref,
            manifest_sha256=first.manifest.sha256 if first.manifest is not None else None,
            versions=tuple(m.version for m in moves.values()),
        ),
        contents=(*_contents(goal, seen), *_outlook(goal, history, seen)),
    )


def _prunes(
    goal: DeployGoal, facts: Mapping[str, UnitFacts], history: Sequence[Deployment], moves: Mapping[str, Move]
) -> list[PruneStep]:
    """Old releases go when all is well, but never where a rollback would have to go."""
    strategy = goal.entry.strategy
    if not isinstance(strategy, Releases):
        return []
    before = [one.target.now for one in moves.values() if one.target.now is not None]
    protect = tuple(dict.fromkeys((goal.ref, *before, *(one.ref for one in good(history)[:2]))))
    units = [facts[instance] for instance in goal.instances]
    return [PruneStep(host=u.host, service=u.service, unit=u.unit, releases=strategy, protect=protect) for u in units]


def _differ(goal: DeployGoal, seen: Mapping[str, Seen]) -> list[Finding]:
    """The same name on two hosts is the same release only when its manifest is."""
    by_digest: dict[str, list[str]] = {}
    for instance in goal.instances:
        found = seen[instance].of(goal.ref)
        if found is not None and found.whole and found.manifest_sha256 is not None:
            by_digest.setdefault(found.manifest_sha256, []).append(instance)
    if len(by_digest) < 2:
        return []
    told = "; ".join(f"{digest[:12]} on {', '.join(where)}" for digest, where in by_digest.items())
    return [Finding(code="deploy.releases-differ", effect="refuse", values={"ref": goal.ref, "found": told})]


def _marked(goal: DeployGoal, history: Sequence[Deployment]) -> list[Finding]:
    """This very version was undone or rolled back before."""
    found = standing_of(history, goal.ref)
    if found is None or found.word != "bad":
        return []
    return [
        Finding(
            code="deploy.bad-before", effect="warn", values={"ref": goal.ref, "change": found.change, "at": found.at}
        )
    ]


def _only_restarted(goal: DeployGoal, moves: Mapping[str, Move]) -> list[Finding]:
    """It is set already and only not running: an undo could do nothing but the same restart."""
    if any(one.do for one in moves.values()):
        return []
    return [Finding(code="deploy.only-restarted", effect="warn", values={"service": goal.service, "ref": goal.ref})]


def _contents(goal: DeployGoal, seen: Mapping[str, Seen]) -> list[Finding]:
    """What the new release holds against the one that runs, where their manifests tell."""
    told: list[Finding] = []
    for instance in goal.instances:
        releases = seen[instance].releases
        if releases is None or releases.difference is None:
            continue
        found = releases.difference
        values: Values = {
            "ref": goal.ref,
            "against": found.against,
            "added": found.added,
            "changed": found.changed,
            "removed": found.removed,
            "names": ", ".join(found.names),
        }
        told.append(Finding(code="deploy.contents", effect="note", values=values))
        if releases.changes is not None:
            said: Values = {"ref": goal.ref, "changes": " · ".join(releases.changes.splitlines())[:MOST_SAID]}
            told.append(Finding(code="deploy.changes", effect="note", values=said))
    return list(unique(told))


def _outlook(goal: DeployGoal, history: Sequence[Deployment], seen: Mapping[str, Seen]) -> tuple[Finding, ...]:
    if goal.word == "rollback":
        if goal.proven is None:
            return ()
        values: Values = {"ref": goal.ref, "change": goal.proven.change, "proven_at": goal.proven.at}
        return (Finding(code="deploy.proven-by", effect="note", values=values),)
    return outlook(goal.entry.strategy, candidates(history, goal.ref), seen)
