"""What answers a failed gate: an undo by itself, or a hold until a person decides."""

from __future__ import annotations

from collections.abc import Iterable

from policies.change import Change
from policies.events import Part
from policies.finding import Finding
from policies.plan import Plan, RestartStep, Step

# Somebody else's doing: never answered by a restart of ours
FOREIGN = frozenset(
    {"gate.port.foreign", "gate.port.older", "gate.incarnation.other", "gate.device-held", "bake.restarted"}
)
FORESEEN = frozenset({"gate.timeout-foreseen"})  # an undo would end alike


def undoes_itself(change: Change, part: Part, answer: str, findings: Iterable[Finding], *, changed: bool) -> bool:
    """Only when the service whose value or version changed fails its own gate, and there is a way back.

    A person who asked to abort has decided. Where somebody else acts on the unit, undoing would be a fight.
    """
    foreign = any(f.code in FOREIGN | FORESEEN for f in findings)
    own = changed and answer == "fail" and change.plan is not None and bool(change.plan.undo)
    return part == "do" and not foreign and (own or change.abort is not None)


def is_changed(plan: Plan, step: Step) -> bool:
    """Whether the value or version changes in the instance of a step."""
    restarts = (s for s in plan.steps if isinstance(s, RestartStep))
    return any(s.changed for s in restarts if (s.service, s.host) == (step.service, step.host))


def undone(plan: Plan) -> Finding:
    """What is as it was before when every gate of an undo has passed."""
    if plan.deploy is not None and plan.undo:
        before = sorted({t.now for t in plan.targets if t.now is not None})
        values: dict[str, str | int | float | None] = {"service": plan.deploy.service, "ref": ", ".join(before) or None}
        return Finding(code="undo.deploy-done", effect="note", values=values)
    values = {"knob": plan.knob}
    return Finding(code="undo.done" if plan.undo else "undo.nothing", effect="note", values=values)


def no_way_back(change: Change) -> Finding | None:
    """Why an abort cannot undo what was done: a deploy has no way back; None where it has, or nothing was changed."""
    plan = change.plan
    if plan is None or plan.deploy is None or plan.undo:
        return None
    if all(plan.steps[index].kind == "restart" for index in change.do.done):
        return None
    values: dict[str, str | int | float | None] = {"service": plan.deploy.service, "ref": plan.deploy.ref}
    return Finding(code="hold.no-way-back", effect="refuse", values=values)
