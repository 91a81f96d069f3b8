"""What a step's knob or version is to be on an instance, and how far that is proven by one look."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from policies import proof as ladder
from policies.deploys.strategy import Variable
from policies.facts import HttpAnswer, UnitFacts
from policies.fleet import Fleet
from policies.gates import reported
from policies.plan import Agreement, Plan, VersionAim
from policies.planning.placement import effective_now
from policies.proof import Proof
from policies.wrapper import wrapped


@dataclass(frozen=True, slots=True)
class Aim:
    """What the step's knob is to be there. `wanted` None: absent."""

    variable: str
    wanted: str | None
    reported_path: str | None


def aim_of(fleet: Fleet, plan: Plan, instance: str, *, undoing: bool) -> Aim | None:
    """What the plan's knob, or the variable of its version, is to be on an instance; None where there is none."""
    target = next((t for t in plan.targets if t.instance == instance), None)
    if target is None or (plan.knob is None and variable_of(fleet, plan) is None):
        return None
    wanted = target.now if undoing else target.then
    if plan.knob is None:
        return Aim(target.variable, wanted, None)
    knob = fleet.knobs[plan.knob]
    return Aim(target.variable, wanted, knob.reported.path if knob.reported else None)


def variable_of(fleet: Fleet, plan: Plan) -> Variable | None:
    """The variable that holds the version which the plan deploys; None where that is held by something else."""
    entry = fleet.services[plan.deploy.service].deploy if plan.deploy is not None else None
    return entry.strategy if entry is not None and isinstance(entry.strategy, Variable) else None


def agreed_of(plan: Plan, instance: str, *, undoing: bool) -> list[tuple[Agreement, str]]:
    """What contracts want an instance to report, each with the value; none where an undo leads to what nobody knows."""
    mine = [one for one in plan.agreements if one.instance == instance]
    wanted = [(one, one.back if undoing else one.then) for one in mine]
    return [(one, value) for one, value in wanted if value is not None]


def version_of(plan: Plan, instance: str, *, undoing: bool) -> VersionAim | None:
    """What is to be read back on an instance; None where the plan says nothing about it."""
    versions = plan.deploy.versions if plan.deploy is not None else ()
    found = next((v for v in versions if v.instance == instance), None)
    if found is None or not undoing:
        return found
    return found.model_copy(update={"then": found.back}) if found.back is not None else None


def prove(facts: UnitFacts, aim: Aim) -> Proof:
    """The ladder for one instance from one look at it."""
    info: HttpAnswer | None = next((a for a in facts.http if a.id == "server_info"), None)
    said = None
    if aim.reported_path is not None and info is not None and info.status == 200:
        said = reported.reported_value(info.body, aim.reported_path)
    return ladder.prove(
        instance=f"{facts.service}@{facts.host}",
        variable=aim.variable,
        wanted=aim.wanted,
        processes=facts.processes,
        effective=effective_now(facts, aim.variable),
        reported=said,
        report_asked=aim.reported_path is not None,
        wraps=wrapped(facts),
    )


def text_sha256(text: str | None) -> str | None:
    """SHA-256 of a file's text as the helper sees it; None for no file."""
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()
