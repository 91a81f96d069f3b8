"""The end as wanted: what is recorded of a change that came through.

With it come the Suspicion that a revert leaves, and the lock that a rollback leaves. Both stand in the one entry that
ends the change, so there is exactly one whoever dies around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies import events as e
from policies import suspicion as su
from policies.change import Change
from policies.intents import RevertKnob
from policies.plan import Plan
from policies.standing import Standing
from workers.deployed import history

if TYPE_CHECKING:
    from workers.wiring import Wiring


def succeeded(wiring: Wiring, change: Change, plan: Plan, standing: Standing | None = None) -> e.Succeeded:
    """The last entry of a change whose gates and watch are through."""
    now = wiring.clock()
    blame = change.planned.blame if change.planned is not None else None
    return e.Succeeded(
        knob=plan.knob,
        order=plan.order,
        word=change.asked.intent.kind if change.asked is not None else None,
        was={t.instance: t.now for t in plan.targets},
        now={t.instance: t.then for t in plan.targets},
        took_s=now - change.started_at,
        suspicion=_suspicion(wiring, change, plan, now),
        service=plan.deploy.service if plan.deploy is not None else None,
        ref=plan.deploy.ref if plan.deploy is not None else None,
        cause=blame.cause if blame is not None else None,
        locked=_locked(wiring, change, plan),
        standing=standing,
    )


def _locked(wiring: Wiring, change: Change, plan: Plan) -> e.RollbackLock | None:
    """What a rollback leaves: deploys of the service wait until somebody confirms something of what was taken away."""
    deploy, asked = plan.deploy, change.asked
    if deploy is None or deploy.word != "rollback" or asked is None:
        return None
    taken = tuple(dict.fromkeys(t.now for t in plan.targets if t.now is not None and t.now != deploy.ref))
    if not taken:
        return None
    past = [one for one in history(wiring.ledger, deploy.service) if one.change != change.id]
    brought = (next((one.change for one in past if one.ref == ref), None) for ref in taken)
    return e.RollbackLock(
        service=deploy.service,
        instances=tuple(t.instance for t in plan.targets),
        taken=taken,
        brought=tuple(dict.fromkeys(one for one in brought if one is not None)),
        owner=asked.actor,
        because=getattr(asked.intent, "because", None),
        where=asked.where,
    )


def _suspicion(wiring: Wiring, change: Change, plan: Plan, now: float) -> su.Suspicion | None:
    """What a revert leaves: a value was taken away for a reason that nobody has shown."""
    asked = change.asked
    if asked is None or not isinstance(asked.intent, RevertKnob) or plan.knob is None:
        return None
    blame = change.planned.blame if change.planned is not None else None
    if blame is not None and blame.cause is not None:
        return None
    was = {t.instance: t.now for t in plan.targets}
    values = set(was.values())
    value = values.pop() if len(values) == 1 else None
    record = su.priced(wiring.client.evidence(plan.knob), plan.knob, value, plan.value)
    review_s = wiring.fleet.timing.review_s
    return su.Suspicion(
        id=su.suspicion_id(change.id),
        change=change.id,
        knob=plan.knob,
        value=value,
        was=was,
        now={t.instance: t.then for t in plan.targets},
        reason=asked.intent.because,
        owner=asked.actor.id,
        at=now,
        review_at=now + review_s,
        review_s=review_s,
        evidence=record.id if record is not None else None,
        prices=su.prices(record),
        blame=blame,
    )
