"""The last look at everything that a change touched, after all gates: the proof that is shown."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from policies import events as e
from policies.finding import Finding
from policies.fleet import Fleet
from policies.plan import Plan
from workers.gatekeeper import Aim, prove
from workers.hosts import Hosts

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


def look(fleet: Fleet, hosts: Hosts, plan: Plan) -> Look:
    """The proof, and what speaks against it.

    Raises: HostUnreachable, HostAnswerLost.
    """
    knob = fleet.knobs[plan.knob] if plan.knob is not None else None
    path = knob.reported.path if knob is not None and knob.reported else None
    seen = hosts.observe(plan.services, [] if knob is None else [knob.env])
    proofs = {t.instance: prove(seen.units[t.instance], Aim(t.variable, t.then, path)) for t in plan.targets}
    health = []
    for name, unit in seen.units.items():
        answer = next((a for a in unit.http if a.id == "health"), None)
        values: dict[str, str | int | float | None] = {"instance": name, "status": answer.status if answer else None}
        ok = answer is not None and answer.status == 200
        code = "proof.healthy" if ok else "proof.not-healthy"
        health.append(Finding(code=code, effect="note" if ok else "refuse", values=values))
    lost = [i for i, p in proofs.items() if p.verdict in {"not_live", "mixed"}]
    not_live = (Finding(code="hold.proof-lost", effect="refuse", values={"instance": name}) for name in lost)
    return e.Proved(proofs=proofs, findings=tuple(health)), (*(f for f in health if f.effect == "refuse"), *not_live)
