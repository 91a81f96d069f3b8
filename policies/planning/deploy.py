"""The plan of a deploy or rollback: for each restart order the switch, write or command of each instance before its
restart, the gates, the way back, and what is taken away when all is well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from policies.contracts import agreements, unknown
from policies.deploys.goal import DeployGoal
from policies.deploys.history import Deployment, good, standing_of
from policies.deploys.outlook import candidates, outlook
from policies.deploys.seen import Seen
from policies.deploys.strategy import Releases
from policies.estimate import estimate
from policies.facts import UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet
from policies.plan import DeployPlan, GateKind, Plan, PruneStep, Step
from policies.planning.availability import all_away
from policies.planning.knob import Planning, unique, versions
from policies.planning.mixed import mixed
from policies.planning.moves import Move, move
from policies.planning.steady import steady
from policies.planning.steps import files, in_turn, not_loaded
from policies.planning.turns import Changing
from policies.planning.waves import Course, course, not_offered, restarted, unrolled
from policies.preflight import preflight, refused
from policies.states.state import State

Values = dict[str, str | int | float | None]
NOT_KNOWN = "a version that is not known"
ODD = frozenset({"deploy.version-unread", "deploy.version-differs"})
MOST_SAID = 400  # characters of what a release says of itself


def plan_deploy(
    fleet: Fleet,
    goal: DeployGoal,
    facts: Mapping[str, UnitFacts],
    seen: Mapping[str, Seen],
    history: Sequence[Deployment],
    policy: tuple[Finding, ...],
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
    settled = [i for i, one in moves.items() if one.settled]
    ways = {order: restarted(fleet, order, goal.instances, settled, facts) for order in goal.orders}
    touched = dict.fromkeys(i for way in ways.values() for i in way)
    refusals += [*_differ(goal, seen), *not_loaded(tuple(touched), facts)]
    refusals += refused(fleet, tuple(touched), facts, recorded)
    if refusals:
        return Planning((), tuple(refusals))
    if len(settled) == len(goal.instances):
        values: Values = {"service": goal.service, "ref": goal.ref, "instances": ", ".join(goal.instances)}
        return Planning((), (Finding(code="deploy.nothing-to-do", effect="note", values=values),))
    about = Changing(goal.instances, settled, _odd(moves), all_away(facts, facts))
    courses = {order: course(fleet, way, about) for order, way in ways.items()}
    now = {i: one.version.now or one.target.now or NOT_KNOWN for i, one in moves.items()}
    then = next(iter(moves.values())).version.then
    plans = tuple(
        _plan(fleet, goal, order, way, facts, seen, history, moves).model_copy(
            update={
                "policy": policy,
                "estimate": estimate([stage.instances for stage in way.do], recorded),
                "warnings": unique(
                    (
                        *mixed(fleet, goal.instances, ways[order], now, then),
                        *way.warnings,
                        *not_offered(courses),
                        *_marked(goal, history),
                        *unknown(fleet, goal.service, facts),
                        *_only_restarted(goal, moves),
                        *(f for m in moves.values() for f in m.findings),
                        *preflight(fleet, ways[order], facts, recorded, goal.instances, states, reset=True),
                    )
                ),
            }
        )
        for order, way in courses.items()
        if isinstance(way, Course)
    )
    return Planning(plans, () if plans else unrolled(courses))


def _odd(moves: Mapping[str, Move]) -> list[str]:
    """Instances of which it was not read that they run the version that they should."""
    return [i for i, one in moves.items() if ODD & {f.code for f in one.findings}]


def _plan(
    fleet: Fleet,
    goal: DeployGoal,
    order: str,
    way: Course,
    facts: Mapping[str, UnitFacts],
    seen: Mapping[str, Seen],
    history: Sequence[Deployment],
    moves: Mapping[str, Move],
) -> Plan:
    ordered = [i for stage in way.do for i in stage.instances]
    changed = {i: one for i, one in moves.items() if i in ordered}
    agreed = agreements(fleet, goal.service, dict.fromkeys(changed, (None, None)), facts)
    more: tuple[GateKind, ...] = ("contract",) if agreed else ()
    gates = {i: (*m.gates, *more) for i, m in changed.items()}
    do = in_turn(fleet, way.do, facts, {i: m.do for i, m in changed.items()}, gates)
    undo: tuple[Step, ...] = ()
    if all(one.undo is not None for one in changed.values()) and any(one.do for one in changed.values()):
        back = {i: m.undo or () for i, m in changed.items()}
        gates = {i: (*m.undo_gates, *more) for i, m in changed.items()}
        undo = in_turn(fleet, way.undo, facts, back, gates, undoing=True)
    first = moves[goal.instances[0]]
    return Plan(
        order=order,
        fleet_sha256=fleet.sha256,
        knob=None,
        value=None,
        targets=tuple(moves[i].target for i in goal.instances),
        steps=(*do, *_prunes(goal, facts, history, changed, way.do[-1].wave)),
        undo=undo,
        files=(*files(ordered, facts), *(m.manifest for m in moves.values() if m.manifest is not None)),
        incarnations=tuple((i, steady(facts[i])) for i in ordered),
        policy=(),
        versions=versions([i for i in ordered if i not in moves], facts),
        deploy=DeployPlan(
            word=goal.word,
            service=goal.service,
            ref=goal.ref,
            manifest_sha256=first.manifest.sha256 if first.manifest is not None else None,
            versions=tuple(m.version for m in moves.values()),
        ),
        agreements=agreed,
        contents=(*_contents(goal, seen), *_outlook(goal, history, seen)),
        rolling=way.rolling,
    )


def _prunes(
    goal: DeployGoal,
    facts: Mapping[str, UnitFacts],
    history: Sequence[Deployment],
    moves: Mapping[str, Move],
    wave: int,
) -> list[PruneStep]:
    """Old releases go when all is well, behind the last wave, but never where a rollback would have to go."""
    strategy = goal.entry.strategy
    if not isinstance(strategy, Releases):
        return []
    before = [one.target.now for one in moves.values() if one.target.now is not None]
    protect = tuple(dict.fromkeys((goal.ref, *before, *(one.ref for one in good(history)[:2]))))
    return [
        PruneStep(host=u.host, service=u.service, unit=u.unit, wave=wave, releases=strategy, protect=protect)
        for u in (facts[instance] for instance in moves)
    ]


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
