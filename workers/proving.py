"""The last look at everything that a change touched, after all gates: the proof that is shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from policies import events as e
from policies.deploys.proof import prove_version
from policies.deploys.strategy import Variable
from policies.facts import UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet
from policies.plan import AdmitStep, DeployPlan, Plan
from policies.proof import Proof
from workers.admitting import admitted
from workers.aims import Aim, prove, variable_of
from workers.hosts import Hosts
from workers.routers import Routers
from workers.versions import Versions

LOOKS = 3
LOOK_PAUSE_S = 0.5
Look = tuple[e.Proved, tuple[Finding, ...]]


def look_until_well(ask: Callable[[], Look]) -> Look:
    """Ask some times before what speaks against the proof counts."""
    for _ in range(LOOKS - 1):
        found = ask()
        if not found[1]:
            return found
        time.sleep(LOOK_PAUSE_S)
    return ask()


def told_already(entries: Iterable[e.Entry]) -> bool:
    """The proof of this attempt is recorded; the worker that recorded it ended behind that."""
    told = False
    for entry in entries:
        if isinstance(entry.event, e.Proved):
            told = True
        elif isinstance(entry.event, (e.RetryAsked, e.UndoAsked)):
            told = False
    return told


def look(fleet: Fleet, hosts: Hosts, plan: Plan, entries: Iterable[e.Entry] = ()) -> Look:
    """The proof, and what speaks against it. entries: of the change, to know what was registered before its drains.

    Raises: HostUnreachable, HostAnswerLost.
    """
    variable = variable_of(fleet, plan)
    knob = fleet.knobs[plan.knob] if plan.knob is not None else None
    asked = [*knob.variables] if knob is not None else [] if variable is None else [variable.env]
    everywhere = dict.fromkeys((*plan.services, *(t.instance for t in plan.targets)))  # those left alone, too
    seen = hosts.observe(tuple(everywhere), asked)
    if plan.deploy is not None:
        proofs = _versions(fleet, hosts, plan, plan.deploy, seen.units)
        lost = [i for i, p in proofs.items() if p.verdict != "live"]
    else:
        path = knob.reported.path if knob is not None and knob.reported else None
        proofs = {t.instance: prove(seen.units[t.instance], Aim(t.variable, t.then, path)) for t in plan.targets}
        lost = [i for i, p in proofs.items() if p.verdict in {"not_live", "mixed"}]
    health = []
    for name, unit in seen.units.items():
        answer = next((a for a in unit.http if a.id == "health"), None)
        values: dict[str, str | int | float | None] = {"instance": name, "status": answer.status if answer else None}
        ok = answer is not None and answer.status == 200
        code = "proof.healthy" if ok else "proof.not-healthy"
        health.append(Finding(code=code, effect="note" if ok else "refuse", values=values))
    admits = {f"{s.service}@{s.host}": s for s in plan.steps if isinstance(s, AdmitStep)}
    told = tuple(entries)
    verdicts = [admitted(Routers(fleet, hosts), step, told) for step in admits.values()]
    health += [finding for verdict in verdicts for finding in verdict.findings]
    gone = "hold.proof-lost" if plan.deploy is None else "hold.version-lost"
    not_live = (Finding(code=gone, effect="refuse", values={"instance": name}) for name in lost)
    return e.Proved(proofs=proofs, findings=tuple(health)), (*(f for f in health if f.effect == "refuse"), *not_live)


def _versions(
    fleet: Fleet, hosts: Hosts, plan: Plan, deploy: DeployPlan, units: Mapping[str, UnitFacts]
) -> dict[str, Proof]:
    """The proof of a version on every instance that was to get it."""
    entry = fleet.services[deploy.service].deploy
    if entry is None:
        raise RuntimeError(f"{deploy.service} was deployed and has no `deploy:` in the fleet file")
    seen = Versions(fleet, hosts).seen(
        tuple(t.instance for t in plan.targets), units, {t.instance: t.then for t in plan.targets}
    )
    proofs: dict[str, Proof] = {}
    for target, aim in zip(plan.targets, deploy.versions, strict=True):
        value = None
        if isinstance(entry.strategy, Variable):
            value = prove(units[target.instance], Aim(target.variable, target.then, None))
        proofs[target.instance] = prove_version(entry, seen[target.instance], deploy.ref, aim.then, value)
    return proofs
