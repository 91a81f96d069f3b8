"""What a golden case of a deploy says -> a fleet, facts, what was seen of versions, the history, and the plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policies.deploys.goal import DeployGoal, deploy_goal, entry_of
from policies.deploys.history import Deployment
from policies.deploys.outlook import candidates
from policies.deploys.seen import Difference, Link, Listed, ReleasesSeen, Seen, Stands, TextRead, Verified, VersionSeen
from policies.deploys.strategy import DeployEntry
from policies.facts import UnitFacts
from policies.finding import Finding
from policies.fleet import Contract, Drain, Fleet
from policies.intents import Deploy, DeployIntent, Rollback
from policies.plan import CommandStep, PruneStep, RestartStep, Step, SwitchStep, WriteStep
from policies.planning.deploy import plan_deploy
from policies.planning.knob import Planning
from tests.policies import builders as b

Case = Mapping[str, Any]
STRATEGIES: dict[str, dict[str, Any]] = {
    "releases": {"path": "/srv/decode"},
    "variable": {"env": "APP_VERSION", "ref": "v[0-9.]+"},
    "command": {"argv": ["/usr/local/bin/deploy", "--to={ref}"], "undo": ["/usr/local/bin/deploy", "--to={ref}"]},
}
VERSION = {"http": "http://127.0.0.1:30001/server_info", "field": "version"}
UNIT = "[Service]\nWorkingDirectory=/srv/decode/current\nExecStart=/srv/decode/current/run\n"


def fleet_of(case: Case) -> Fleet:
    """The plain fleet, whose decode can be deployed as the case says."""
    kind = case.get("strategy", "releases")
    strategy = {"kind": kind, **STRATEGIES[kind], **case.get("with", {})}
    version = {**VERSION, **case.get("version_source", {})}
    entry = DeployEntry.model_validate({
        "strategy": strategy, "version": version, "restarts": case.get("restarts", ["co-restart", "decode-only"]),
    })  # fmt: skip
    plain = b.fleet(hosts=case.get("hosts", ["gpu1"]))
    if case.get("undeployable"):
        return plain
    rolling = case.get("rolling", plain.services["decode"].rolling)
    drain = None
    if case.get("drain") is not None:
        drain = Drain.model_validate({"router": "router", "worker": "http://{address}:30001", **case["drain"]})
    more = {"deploy": entry, "rolling": rolling, "drain": drain}
    decode = plain.services["decode"].model_copy(update=more)
    contracts = {name: Contract(name=name, reported=paths) for name, paths in case.get("contracts", {}).items()}
    return plain.model_copy(update={"services": {**plain.services, "decode": decode}, "contracts": contracts})


def history_of(case: Case) -> list[Deployment]:
    """Newest first; a case lists them oldest first."""
    told = [
        Deployment(
            change=f"C-{number}",
            word=one.get("word", "deploy"),
            ref=one["ref"],
            was=tuple(one.get("was", ())),
            end=one.get("end", "proven"),
            at=b.NOW - 86400 + number,
        )
        for number, one in enumerate(case.get("history", ()), start=1)
    ]
    return told[::-1]


def of_instance(value: Any, instance: str, default: Any = None) -> Any:
    """A value that a case gives once for all instances, or by instance."""
    if isinstance(value, dict) and any("@" in key for key in value):
        return value.get(instance, default)
    return default if value is None else value


def seen_of(case: Case, instance: str, refs: list[str]) -> Seen:
    """What was seen of one instance: all is well where the case says nothing."""
    now = of_instance(case.get("now", "v1"), instance)
    text = of_instance(case.get("runs", now), instance) if "runs" in case else now
    error = of_instance(case.get("unread"), instance)
    version = VersionSeen(text=None if error else text, source=VERSION["http"], error=error)
    if case.get("strategy", "releases") == "command":
        checks = {ref: TextRead(text="", error=of_instance(case.get("checks"), instance), at=b.NOW) for ref in refs}
        return Seen(instance, now, version, None, checks)
    if case.get("strategy", "releases") == "variable":
        return Seen(instance, now, version)
    if of_instance(case.get("no_releases"), instance):
        return Seen(instance, None, version)
    state = case.get("link", "link" if now is not None else "absent")
    link = Link.model_validate({
        "state": state, "release": now if state == "link" else None, "target": case.get("target"),
        "exists": state == "link" and not case.get("dangling"),
    })  # fmt: skip
    verified = [verified_of(case, instance, ref) for ref in refs]
    difference = None
    if now is not None and now != refs[0]:
        difference = Difference(against=now, added=1, changed=2, removed=0, names=("+a", "~b", "~c"))
    stands = of_instance(case.get("stands", now), instance)
    return Seen(
        instance,
        now if state == "link" else None,
        version,
        ReleasesSeen(
            link=link,
            releases=tuple(Listed(name=name, at=number) for number, name in enumerate(case.get("there", ("v2", "v1")))),
            verified=tuple(verified),
            difference=difference,
            changes=case.get("changes"),
            runs=() if stands is None else (Stands(pid=2101, main=True, release=stands),),
            at=b.NOW,
        ),
    )


def verified_of(case: Case, instance: str, ref: str) -> Verified:
    """A release that is whole, unless the case says otherwise of it."""
    plain = {"ref": ref, "exists": True, "manifest_sha256": f"{ref:0<64}", "files": 10, "bytes": 1000}
    said = of_instance(case.get("verified", {}).get(ref), instance, {})
    return Verified.model_validate({**plain, **said})


def facts_of(case: Case, fleet: Fleet) -> dict[str, UnitFacts]:
    """Units that start from the link; the variable, where there is one, is what `now` says."""
    answers: dict[str, Any] = {"fragment": case.get("fragment", UNIT)}
    found = b.facts(fleet, decode=b.unit(**answers))
    for instance in fleet.instances("decode"):
        now = of_instance(case.get("now", "v1"), instance)
        if case.get("strategy") != "variable":
            continue
        text = f'[Service]\nEnvironment="APP_VERSION={now}"\n' if now is not None else "[Service]\n"
        text = case.get("fragment", text)
        unit = b.unit(instance, fragment=text, dropins=case.get("dropins"), pid=found[instance].incarnation.main_pid)
        main = unit.processes[0].model_copy(update={"variable": "APP_VERSION", "answer": "present", "value": now})
        if now is None:
            main = main.model_copy(update={"answer": "absent"})
        found[instance] = unit.model_copy(update={"processes": (main,)})
    for instance, changes in case.get("units", {}).items():
        found[instance] = UnitFacts.model_validate({**found[instance].model_dump(mode="json"), **changes})
    return found


def intent_of(case: Case) -> DeployIntent:
    """`ref`, or a rollback where there is none."""
    order = case.get("order")
    service = case.get("service", "decode")
    if "ref" in case:
        return Deploy(service=service, ref=case["ref"], order=order)
    return Rollback(service=service, order=order)


def planned(case: Case) -> tuple[Fleet, DeployGoal | None, Planning]:
    """What comes of a case. Where not even a goal is found, the planning holds the one finding that says why."""
    fleet, past, intent = fleet_of(case), history_of(case), intent_of(case)
    entry = entry_of(intent, fleet)
    if isinstance(entry, Finding):
        return fleet, None, Planning((), (entry,))
    instances = fleet.instances("decode")
    now = {i: seen_of(case, i, ["none"]).now for i in instances}
    goal = deploy_goal(intent, entry, fleet, past, now)
    if isinstance(goal, Finding):
        return fleet, None, Planning((), (goal,))
    refs = [*dict.fromkeys((goal.ref, *(one.ref for one in candidates(past, goal.ref))))]
    seen = {i: seen_of(case, i, refs) for i in instances}
    return fleet, goal, plan_deploy(fleet, goal, facts_of(case, fleet), seen, past, ())


def told(step: Step) -> str:
    """A step as the golden cases write it."""
    name = f"{step.service}@{step.host}"
    if isinstance(step, SwitchStep):
        checked = "" if step.manifest_sha256 is not None else " unchecked"
        return f"switch {name} {step.before} -> {step.to}{checked}"
    if isinstance(step, CommandStep):
        return f"command {name} {' '.join(step.argv)}"
    if isinstance(step, PruneStep):
        return f"prune {name} keep {step.releases.keep} and {' '.join(step.protect)}"
    if isinstance(step, WriteStep):
        lines = [line for line in (step.text or "").splitlines() if line.startswith(("Environment=", "Unset"))]
        return f"write {name} {' '.join(lines) or 'nothing'}"
    assert isinstance(step, RestartStep)
    return f"restart {name}{' (changed)' if step.changed else ''}: {' '.join(step.gates)}"
