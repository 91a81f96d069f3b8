"""Plans of a change from what the hosts say now: used to prepare it, and again before it is executed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from policies import events as e
from policies.case import Case
from policies.decision import Decision, decide
from policies.estimate import estimate
from policies.facts import UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet
from policies.load import plan_load
from policies.plan import Plan
from policies.planning.goal import Goal, goal
from policies.planning.knob import plan_knob
from policies.planning.placement import effective_now
from workers.hosts import Hosts
from workers.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Outcome:
    """Plans with the decision that allows them; or no plans and the findings that say why."""

    plans: tuple[Plan, ...]
    decision: Decision | None
    findings: tuple[Finding, ...]
    nothing_to_do: bool = False


class Planner:
    """Reads hosts and the ledger; changes nothing."""

    def __init__(self, fleet: Fleet, hosts: Hosts, ledger: Ledger, clock: Callable[[], float]) -> None:
        self._fleet = fleet
        self._hosts = hosts
        self._ledger = ledger
        self._clock = clock

    def plan(self, asked: e.Asked) -> Outcome:
        """Observe, find the goal, decide, plan. All refusals come at once.

        Raises: HostUnreachable, HostAnswerLost.
        """
        fleet, intent = self._fleet, asked.intent
        knob = fleet.knobs.get(intent.knob)
        if knob is None:
            found = goal(intent, fleet, (), {})
            return Outcome((), None, (found,) if isinstance(found, Finding) else ())
        services = dict.fromkeys(s for order in knob.restarts for s in fleet.restarts[order])
        instances = [i for service in dict.fromkeys((*services, *knob.on)) for i in fleet.instances(service)]
        facts = self._hosts.observe(instances, [knob.env]).units
        live = {i: effective_now(facts[i], knob.env).value for service in knob.on for i in fleet.instances(service)}
        aim = goal(intent, fleet, self._history(knob.name), live)
        if isinstance(aim, Finding):
            return Outcome((), None, (aim,))
        decision = decide(self._case(asked, aim))
        return self._outcome(aim, decision, facts)

    def _outcome(self, aim: Goal, decision: Decision, facts: dict[str, UnitFacts]) -> Outcome:
        orders = {order: estimate(self._fleet, order, self._boots()) for order in aim.orders}
        estimates = {order: found for order, found in orders.items() if found is not None}
        planning = plan_knob(self._fleet, aim, facts, decision.findings, estimates)
        refusals = tuple(f for f in (*decision.findings, *planning.findings) if f.effect == "refuse")
        if not planning.plans and all(f.effect != "refuse" for f in planning.findings):
            # what changes nothing needs no evidence and no open window, only somebody who may ask
            refusals = tuple(f for f in refusals if not f.code.startswith(("evidence.", "freeze.")))
        if refusals:
            warnings = planning.plans[0].warnings if planning.plans else _warnings(planning.findings)
            return Outcome((), decision, (*refusals, *warnings))
        if not planning.plans:
            return Outcome((), decision, planning.findings, nothing_to_do=True)
        plans = (
            plan.model_copy(update={"load": plan_load(self._fleet, plan.order, aim.instances, facts)})
            for plan in planning.plans
        )
        return Outcome(tuple(plans), decision, decision.findings)

    def _case(self, asked: e.Asked, aim: Goal) -> Case:
        records = [
            entry.event.record
            for entry in self._ledger.index(f"evidence:{aim.knob.name}")
            if isinstance(entry.event, e.EvidenceRecorded)
        ]
        return Case(aim.word, asked.actor, self._fleet, aim.knob, aim.value, tuple(records), self._clock())

    def _history(self, knob: str) -> list[e.Succeeded]:
        entries = self._ledger.index(f"knob:{knob}")
        return [entry.event for entry in entries if isinstance(entry.event, e.Succeeded)]

    def _boots(self) -> dict[str, list[float]]:
        boots: dict[str, list[float]] = {}
        for service in self._fleet.services:
            for instance in self._fleet.instances(service):
                events = [entry.event for entry in self._ledger.index(f"boot:{instance}")]
                boots[instance] = [
                    ev.waited_s for ev in events if isinstance(ev, e.GatePassed) and ev.waited_s is not None
                ]
        return boots


def _warnings(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(f for f in findings if f.effect in {"warn", "note"})
