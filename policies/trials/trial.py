"""One intent judged by a fleet's policy without hosts: the same goal, case and decision as when it is planned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from policies.applicability import Holds, Standing
from policies.case import Case
from policies.decision import Decision, decide
from policies.deploys.goal import entry_of, ref_problem
from policies.events import Succeeded
from policies.evidence import Record
from policies.finding import Finding
from policies.fleet import Fleet
from policies.intents import Actor, Deploy, DeployIntent, Intent, Restart, Rollback
from policies.planning.goal import goal
from policies.planning.restart import restart_goal

Outcome = Literal["allowed", "needs_approval", "refused"]


@dataclass(frozen=True, slots=True)
class Trial:
    """What is asked and what is known then. `now` is epoch seconds.

    live: the knob's value by instance (service@host); an instance that is left out has none.
    history: the knob's succeeded changes, oldest first. holds: what a record was worth then, by its id; else valid.
    """

    intent: Intent
    actor: Actor
    now: float
    live: Mapping[str, str | None] = field(default_factory=dict)
    history: tuple[Succeeded, ...] = ()
    evidence: tuple[Record, ...] = ()
    holds: Mapping[str, Holds] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ruling:
    """What policy says. approvals: how many; by: the role that may give them."""

    outcome: Outcome
    findings: tuple[Finding, ...]
    approvals: int = 0
    by: str | None = None


def rule_on(trial: Trial, fleet: Fleet) -> Ruling:
    """The ruling of this fleet's policy. What only hosts can tell (files, processes, ports) is not looked at."""
    case = _case(trial, fleet)
    return Ruling("refused", (case,)) if isinstance(case, Finding) else _ruling(decide(case))


def _case(trial: Trial, fleet: Fleet) -> Case | Finding:
    intent = trial.intent
    if isinstance(intent, Restart):
        aim = restart_goal(intent, fleet)
        if isinstance(aim, Finding):
            return aim
        services = tuple(dict.fromkeys(instance.split("@")[0] for instance in aim.instances))
        return Case("restart", trial.actor, fleet, None, services, None, (), trial.now).said(intent)
    if isinstance(intent, (Deploy, Rollback)):
        return _deploy(trial, intent, fleet)
    found = goal(intent, fleet, trial.history, dict(trial.live))
    if isinstance(found, Finding):
        return found
    knob = found.knob
    standings = {r.id: Standing(record=r.id, word=trial.holds.get(r.id, "valid")) for r in trial.evidence}
    case = Case(found.word, trial.actor, fleet, knob, knob.on, found.value, trial.evidence, trial.now)
    return replace(case, standings=standings).said(intent)


def _deploy(trial: Trial, intent: DeployIntent, fleet: Fleet) -> Case | Finding:
    """What hosts and past deploys tell is not looked at: whether the version is there, or where a rollback goes."""
    entry = entry_of(intent, fleet)
    if isinstance(entry, Finding):
        return entry
    ref = intent.ref if isinstance(intent, Deploy) else None
    problem = ref_problem(ref, entry) if ref is not None else None
    case = Case(intent.kind, trial.actor, fleet, None, (intent.service,), ref, (), trial.now)
    return problem or case.said(intent)


def _ruling(decision: Decision) -> Ruling:
    outcomes: dict[str, Outcome] = {"allowed": "allowed", "needs": "needs_approval", "refused": "refused"}
    return Ruling(outcomes[decision.outcome], decision.findings, decision.approvals, decision.by)
