"""What a golden case of replicas says -> a fleet, facts, and what is planned; and a plan as the cases write it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from policies.facts import PortOwner, UnitFacts
from policies.fleet import Drain, Fleet
from policies.intents import Restart
from policies.plan import AdmitStep, DrainStep, Plan, RestartStep, Rolling, Step
from policies.planning.knob import Planning, plan_knob
from policies.planning.restart import RestartGoal, plan_restart, restart_goal
from policies.planning.waves import stages_of
from tests.policies import builders as b
from tests.policies import deploy_cases

Case = Mapping[str, Any]
HOSTS = ("gpu1", "gpu2", "gpu3", "gpu4", "gpu5")
SERVICES = ("prefill", "decode", "router")
PORTS = {"prefill": 30000, "decode": 30001}
HEAD = "# written by clawback: edits made here by hand are seen as drift and stop the next change\n[Service]\n"
FOREIGN = PortOwner.model_validate({
    "port": 30001, "state": "owned", "pid": 7, "cgroup": "/other", "in_unit": False, "started": 1, "name": "nc",
    "since": b.NOW,
})  # fmt: skip
SAID = frozenset({"plan.away-now", "plan.mixed", "plan.left-alone", "plan.mixed-after", "plan.order-not-offered"})
AWAY: dict[str, dict[str, Any]] = {
    "503": {"http": (b.answer(503, id="health"),)},
    "silent": {"http": (b.answer(None, id="health", error="timed out"),)},
    "failed": {"active_state": "failed", "result": "exit-code"},
    "loops": {"n_restarts": 40, "http": (b.answer(None, id="health", error="refused"),)},
    "port": {"port": FOREIGN, "http": (b.answer(200, id="health"),)},
    "well": {"http": (b.answer(200, id="health"),)},
}


def fleet_of(case: Case) -> Fleet:
    """prefill -> decode -> router on so many hosts each, taken in turn as the case says."""
    plain = b.fleet(hosts=HOSTS, canary=case.get("canary_request", True), knobs=())
    services = {
        name: plain.services[name].model_copy(
            update={"on": HOSTS[: case.get(name, 1)], "rolling": rolling_of(case, name)}
        )
        for name in SERVICES
    }
    hosts = {
        name: host.model_copy(update={"address": f"192.0.2.{number}"})
        for number, (name, host) in enumerate(plain.hosts.items(), start=1)
    }
    for name, drain in case.get("drain", {}).items():
        entry = Drain.model_validate({"router": "router", "worker": f"http://{{address}}:{PORTS[name]}", **drain})
        services[name] = services[name].model_copy(update={"drain": entry})
    known = b.knob(on=tuple(case.get("knob_on", ("decode",))))
    return plain.model_copy(update={"hosts": hosts, "services": services, "knobs": {known.name: known}})


def rolling_of(case: Case, service: str) -> Any:
    """The entry `rolling` of a service."""
    return b.fleet().services["decode"].rolling.model_copy(update=case.get("rolling", {}).get(service, {}))


def facts_of(case: Case, fleet: Fleet) -> dict[str, UnitFacts]:
    """Well units without a value, but those of which the case says otherwise. `live` is what the process has."""
    found = b.facts(fleet)
    for instance, value in case.get("now", {}).items():
        live = case.get("live", {}).get(instance, value)
        dropins = {} if value is None else {"zz-clawback.conf": f'{HEAD}Environment="{b.ENV}={value}"\n'}
        pid = found[instance].incarnation.main_pid
        found[instance] = b.unit(instance, dropins=dropins, running=live, pid=pid)
    for instance, why in case.get("away", {}).items():
        found[instance] = found[instance].model_copy(update=AWAY[why])
    return found


def planned(case: Case) -> Planning:
    """What comes of a case: a restart, a deploy, a rollback, or (plainly) a knob that is set."""
    boots = {i: tuple(seconds) for i, seconds in case.get("boots", {}).items()}
    if "deploy" in case:
        asked = {**case["deploy"], "hosts": list(HOSTS[: case.get("decode", 1)]), "rolling": rolling_of(case, "decode")}
        asked["drain"] = case.get("drain", {}).get("decode")
        asked["units"] = {i: jsonable(AWAY[why]) for i, why in case.get("away", {}).items()}
        return deploy_cases.planned(asked)[2]
    fleet = fleet_of(case)
    facts = facts_of(case, fleet)
    if "restart" in case:
        goal = restart_goal(Restart(scope=case["restart"], order=case.get("order")), fleet)
        assert isinstance(goal, RestartGoal), goal
        seen = facts if case.get("looked") else {i: facts[i] for i in goal.instances}
        return plan_restart(fleet, goal, seen, (), boots)
    aim: dict[str, Any] = {} if "order" not in case else {"orders": (case["order"],)}
    if "on" in case:
        aim["instances"] = tuple(case["on"])
    return plan_knob(fleet, b.goal_of(fleet, case.get("value", "512"), **aim), facts, (), boots=boots)


def jsonable(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes of a unit as JSON."""
    whole = b.unit().model_copy(update=dict(changes)).model_dump(mode="json")
    return {key: whole[key] for key in changes}


def waves(steps: tuple[Step, ...]) -> list[str]:
    """A line a wave: `1: prefill@gpu1 > *decode@gpu1 + *decode@gpu2`; a star where something changes."""
    changed = {name(step) for step in steps if isinstance(step, RestartStep) and step.changed}
    told = []
    for number, stages in groupby(stages_of(steps), key=lambda stage: stage.wave):
        each = (" + ".join(f"*{i}" if i in changed else i for i in stage.instances) for stage in stages)
        told.append(f"{number}: {' > '.join(each)}")
    return told


def told(step: Step) -> str:
    """A step as the golden cases write it."""
    if isinstance(step, DrainStep):
        return f"drain {name(step)} at {' '.join(at.router for at in step.at)}: {step.deadline_s:g} s, then {step.over}"
    if isinstance(step, AdmitStep):
        return f"admit {name(step)} at {' '.join(at.router for at in step.at)}: {' '.join(step.gates)}"
    return deploy_cases.told(step)


def name(step: Step) -> str:
    """service@host."""
    return f"{step.service}@{step.host}"


def floor(rolling: Rolling) -> str:
    """`decode 2 of 3, 1 at once, first decode@gpu1`."""
    first = f", first {rolling.canary.instance}" if rolling.canary is not None else ""
    most = rolling.max_unavailable
    return f"{rolling.service} {rolling.keep} of {rolling.replicas}, {most} at once{first}"


def drawn(plan: Plan) -> dict[str, Any]:
    """A plan as the golden cases write it."""
    return {
        "order": plan.order,
        "waves": waves(plan.steps),
        "undo": waves(plan.undo),
        "floors": [floor(one) for one in plan.rolling],
    }
