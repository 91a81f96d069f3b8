"""Plans of a change from what the hosts say now: used to prepare it, and again before it is executed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from policies import events as e
from policies.applicability import Standing
from policies.case import Case
from policies.context import LoadRange
from policies.contracts import mismatches, partners
from policies.decision import Decision, decided
from policies.deploys.goal import deploy_goal, entry_of
from policies.deploys.outlook import candidates
from policies.deploys.strategy import Variable
from policies.errors import HostAnswerLost, HostUnreachable
from policies.evidence import Record
from policies.facts import UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet
from policies.intents import Deploy, DeployIntent, KnobIntent, Restart, Rollback
from policies.load import plan_load
from policies.locks import Lock, in_the_way, standing
from policies.plan import Plan
from policies.planning.deploy import plan_deploy
from policies.planning.goal import goal
from policies.planning.knob import Planning, plan_knob
from policies.planning.placement import effective_now
from policies.planning.restart import plan_restart, restart_goal
from policies.planning.steps import instances_of
from policies.states.state import State
from workers import context
from workers.boots import boots
from workers.context import Contexts
from workers.deployed import deployed, history
from workers.foreseeing import at_routers
from workers.hosts import Hosts
from workers.ledger import Ledger
from workers.states import States
from workers.versions import Versions

NEEDLESS = ("evidence.", "freeze.", "ticket.", "lock.", "emergency.")
GIVES = frozenset({"set", "restore"})  # what gives a value, so that evidence is asked for


@dataclass(frozen=True, slots=True)
class Outcome:
    """Plans with the decision that allows them; or no plans and the findings that say why.

    standings: what evidence is worth today. load: requests that ran, which evidence had to cover.
    """

    plans: tuple[Plan, ...]
    decision: Decision | None
    findings: tuple[Finding, ...]
    nothing_to_do: bool = False
    standings: tuple[Standing, ...] = ()
    load: LoadRange | None = None


class Planner:
    """Reads hosts and the ledger; changes nothing."""

    def __init__(
        self,
        fleet: Fleet,
        hosts: Hosts,
        ledger: Ledger,
        clock: Callable[[], float],
        states: States,
        contexts: Contexts,
    ) -> None:
        self._states = states
        self._contexts = contexts
        self._fleet = fleet
        self._hosts = hosts
        self._ledger = ledger
        self._clock = clock
        self._versions = Versions(fleet, hosts)

    def plan(self, asked: e.Asked, before: e.Planned | None = None) -> Outcome:
        """Observe, find the goal, decide, plan. All refusals come at once.

        before: the plan that was approved. Evidence is judged for the load that was seen then: load is no part of what
        an approver agrees to, and moves with every request.
        Raises: HostUnreachable, HostAnswerLost.
        """
        if isinstance(asked.intent, Restart):
            return self._restart(asked, asked.intent)
        if isinstance(asked.intent, (Deploy, Rollback)):
            return self._deploy(asked, asked.intent, before)
        return self._knob(asked, asked.intent, before)

    def _restart(self, asked: e.Asked, intent: Restart) -> Outcome:
        fleet = self._fleet
        aim = restart_goal(intent, fleet)
        if isinstance(aim, Finding):
            return Outcome((), None, (aim,))
        facts = self._hosts.observe(aim.instances, []).units
        services = tuple(dict.fromkeys(facts[i].service for i in aim.instances))
        decision = decided(Case("restart", asked.actor, fleet, None, services, None, (), self._clock()), asked)
        recorded = boots(self._ledger, fleet)
        planning = plan_restart(
            fleet,
            aim,
            {**self._beside(aim.instances), **facts},
            decision.findings,
            recorded,
            states=self._states.of(facts),
            anyway=asked.actor.id if intent.anyway else None,
        )
        return self._outcome(planning, decision, facts, aim.instances)

    def _beside(self, instances: tuple[str, ...]) -> dict[str, UnitFacts]:
        """The other replicas of these services, as far as they can be asked: how many are in service counts, too."""
        services = dict.fromkeys(i.split("@")[0] for i in instances)
        found: dict[str, UnitFacts] = {}
        for other in (i for service in services for i in self._fleet.instances(service) if i not in instances):
            with suppress(HostUnreachable, HostAnswerLost):  # looked for again before anything is touched
                found |= self._hosts.observe((other,), []).units
        return found

    def _deploy(self, asked: e.Asked, intent: DeployIntent, before: e.Planned | None) -> Outcome:
        fleet = self._fleet
        entry = entry_of(intent, fleet)
        if isinstance(entry, Finding):
            return Outcome((), None, (entry,))
        own = fleet.instances(intent.service)
        orders = entry.restarts if intent.order is None else (intent.order,)
        beside = partners(fleet, intent.service)  # what it has to agree with
        touched = dict.fromkeys((*own, *beside, *(i for order in orders for i in instances_of(fleet, order))))
        variables = [entry.strategy.env] if isinstance(entry.strategy, Variable) else []
        facts = self._hosts.observe(tuple(touched), variables).units
        past = history(self._ledger, intent.service)
        seen = self._versions.seen(own, facts, deployed(self._ledger, intent.service))
        aim = deploy_goal(intent, entry, fleet, past, {i: one.now for i, one in seen.items()})
        if isinstance(aim, Finding):
            return Outcome((), None, (aim,))
        refs = dict.fromkeys((aim.ref, *(one.ref for one in candidates(past, aim.ref) if aim.word == "deploy")))
        seen = self._versions.examined(seen, tuple(refs), aim.ref)
        case = Case(aim.word, asked.actor, fleet, None, (aim.service,), aim.ref, (), self._clock())
        left = in_the_way(self._locks(), (), aim.service) if aim.word == "deploy" else ()
        decision = decided(replace(case, locks=left), asked)
        seconds = boots(self._ledger, fleet)
        states = self._working(facts, before)
        planning = plan_deploy(fleet, aim, facts, seen, past, decision.findings, seconds, states)
        return self._outcome(planning, decision, facts, own)

    def _knob(self, asked: e.Asked, intent: KnobIntent, before: e.Planned | None) -> Outcome:
        fleet = self._fleet
        knob = fleet.knobs.get(intent.knob)
        if knob is None:
            found = goal(intent, fleet, (), {})
            return Outcome((), None, (found,) if isinstance(found, Finding) else ())
        facts = self._contexts.look(knob, log=intent.kind in GIVES)
        everywhere = [(i, knob.variable(service)) for service in knob.on for i in fleet.instances(service)]
        live = {i: effective_now(facts[i], variable).value for i, variable in everywhere}
        aim = goal(intent, fleet, self._history(knob.name), live)
        if isinstance(aim, Finding):
            return Outcome((), None, (aim,))
        today = self._contexts.today(knob, facts, before.load_seen if before is not None else None)
        records = self._evidence(knob.name)
        case = Case(aim.word, asked.actor, fleet, knob, knob.on, aim.value, records, self._clock())
        case = replace(case, standings=context.standings(case, today))
        decision = decided(case, asked)
        recorded = boots(self._ledger, fleet)
        states = self._working(facts, before)
        planning = plan_knob(fleet, aim, facts, decision.findings, boots=recorded, states=states)
        outcome = self._outcome(planning, decision, facts, aim.instances)
        return replace(outcome, standings=context.told(case, [aim.value, *live.values()]), load=today.load)

    def _working(self, facts: dict[str, UnitFacts], before: e.Planned | None) -> dict[str, State]:
        """What engines do, for who has to agree; what was approved is looked at again for other reasons."""
        return self._states.of(facts) if before is None else {}

    def _outcome(
        self, planning: Planning, decision: Decision, facts: dict[str, UnitFacts], aimed: tuple[str, ...]
    ) -> Outcome:
        planning, locked = self._open(planning)
        held = (*self._held_by_others(planning), *locked)
        found = (*decision.findings, *planning.findings, *held)
        ways = () if any(f.effect == "refuse" for f in found) else planning.plans
        at_router = at_routers(self._fleet, self._hosts, ways)
        found = (*found, *(f for f in at_router if f.effect == "refuse"))
        refusals = tuple(f for f in found if f.effect == "refuse" or f.code == "emergency.could")
        if not planning.plans and all(f.effect != "refuse" for f in planning.findings):
            # what changes nothing needs no evidence and no open window, only somebody who may ask
            refusals = tuple(f for f in refusals if not f.code.startswith(NEEDLESS))
        if refusals:
            warnings = planning.plans[0].warnings if planning.plans else _warnings(planning.findings)
            return Outcome((), decision, (*refusals, *warnings))
        if not planning.plans:
            return Outcome((), decision, planning.findings, nothing_to_do=True)
        broken = mismatches(self._fleet, facts)
        plans = []
        for plan in planning.plans:
            load = plan_load(self._fleet, plan.services, aimed, facts)
            plans.append(plan.model_copy(update={"load": load, "warnings": (*broken, *plan.warnings, *at_router)}))
        return Outcome(tuple(plans), decision, decision.findings)

    def _open(self, planning: Planning) -> tuple[Planning, tuple[Finding, ...]]:
        """The plans that no lock stands in the way of; where none is left, the locks that do."""
        locks = self._locks()
        ways = [(plan, in_the_way(locks, plan.leased)) for plan in planning.plans]
        left = tuple(plan for plan, found in ways if not found)
        if not ways or left:
            return replace(planning, plans=left), ()
        found = {str(one.values["lock"]): one for _, ours in ways for one in ours}
        return planning, tuple(found.values())

    def _locks(self) -> tuple[Lock, ...]:
        return standing(self._ledger.index("locks"), self._clock())

    def _held_by_others(self, planning: Planning) -> tuple[Finding, ...]:
        """Changes that wait for a person keep what they touched: undoing one must not undo a newer one with it."""
        wanted = {i for plan in planning.plans for i in plan.leased}
        found: list[Finding] = []
        for name in self._ledger.open_changes():
            other = self._ledger.load(name)
            shared = wanted & set(other.plan.leased if other.plan is not None else ())
            if other.state == "held" and shared:
                values: dict[str, str | int | float | None] = {"change": name, "instances": ", ".join(sorted(shared))}
                found.append(Finding(code="plan.held-by", effect="refuse", values=values))
        return tuple(found)

    def _evidence(self, knob: str) -> tuple[Record, ...]:
        events = (entry.event for entry in self._ledger.index(f"evidence:{knob}"))
        return tuple(event.record for event in events if isinstance(event, e.EvidenceRecorded))

    def _history(self, knob: str) -> list[e.Succeeded]:
        entries = self._ledger.index(f"knob:{knob}")
        return [entry.event for entry in entries if isinstance(entry.event, e.Succeeded)]


def _warnings(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(f for f in findings if f.effect in {"warn", "note"})
