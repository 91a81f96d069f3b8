"""Who may say what about a change, and when: confirm, deny, abort, keep, undo, retry, ratify.

Pure: judged on a freshly loaded change; the caller records the answer with a compare-and-set, so that of two
clicks one wins and the other is judged again on what the first one made of the change.
"""

from __future__ import annotations

from policies.change import OVERRIDDEN, Change
from policies.emergency import alone, ratification
from policies.events import Held
from policies.finding import Finding
from policies.fleet import Fleet
from policies.intents import Act, Actor

# Holds that are settled by asking the host again, once it is there, known, lets us, or has its devices free
ASK_AGAIN = frozenset(
    {
        "hold.host-silent",
        "hold.floor",
        "hold.mixed",
        "hold.host-refused",
        "hold.drain-over",
        "hold.drain-unknown",
        "hold.router-unreached",
        "hold.not-taken-out",
        "hold.registered-again",
        "hold.not-listed",
        "hold.router-refused",
        "router.no-answer",
        "router.forbidden",
        "router.no-list",
        "router.unreadable",
        "host.key-refused",
        "hold.device-held",
        "hold.command-failed",
        "hold.release-broken",
    }
)
LOOK_AGAIN_S = 30.0  # so long after a new plan a word that names none is not taken for it
REMIND_BEFORE_S = 300.0  # before the end; at half time where less than twice of it is given


def judge(change: Change, act: Act, actor: Actor, fleet: Fleet, now: float) -> Finding:
    """One finding: `allow` (`click.ok`, or `click.more-needed` below the quorum) or `refuse` with its reason."""
    if act.kind == "confirm":
        return _confirm(change, act, actor, now)
    if act.kind == "deny":
        return _deny(change, actor)
    if act.kind == "abort":
        return _abort(change, actor, fleet)
    if act.kind == "ratify":
        return _ratify(change, actor, now)
    return _on_held(change, act, actor, fleet)


def _refuse(code: str, change: Change, actor: Actor, **values: str | float | None) -> Finding:
    return Finding(code=code, effect="refuse", values={"change": change.id, "actor": actor.id, **values})


def _ok(change: Change, actor: Actor, act: str) -> Finding:
    return Finding(code="click.ok", effect="allow", values={"change": change.id, "actor": actor.id, "act": act})


def _is_requester(change: Change, actor: Actor) -> bool:
    return change.asked is not None and change.asked.actor.id == actor.id


def _approver(change: Change, actor: Actor) -> bool:
    by = _by(change)
    return by is not None and by in actor.roles


def _by(change: Change) -> str | None:
    """The role of those who decide. An emergency that no rule asks an approver for has those who ratify it."""
    planned = change.planned
    if planned is None or planned.by is not None:
        return planned.by if planned is not None else None
    return planned.emergency.ratify_by if planned.emergency is not None else None


def _confirm(change: Change, act: Act, actor: Actor, now: float) -> Finding:
    planned = change.planned
    if change.state != "planned" or planned is None:
        return _wrong_state(change, actor, "confirm")
    if planned.dry:
        return _refuse("click.dry", change, actor)
    if now >= planned.expires_at:
        return _refuse("click.expired", change, actor, expires_at=planned.expires_at)
    orders = {plan.order: plan for plan in planned.plans}
    order = act.order or planned.plans[0].order
    if order not in orders:
        return _refuse("click.no-such-order", change, actor, order=order, orders=", ".join(orders))
    if act.digest is not None and act.digest != orders[order].digest:
        return _refuse("click.old-plan", change, actor)
    if act.digest is None and change.replans and now - change.planned_at < LOOK_AGAIN_S:
        # a typed word names no plan: it may have been meant for the one before
        return _refuse("click.planned-again", change, actor, ago_s=now - change.planned_at)
    if alone(change, actor):
        return _alone(change, act, actor)
    if _is_requester(change, actor):
        return _refuse("click.self-approval", change, actor)
    if not _approver(change, actor):
        return _refuse("click.not-approver", change, actor, by=_by(change))
    given = [a for a in change.approvals if a.order == order]
    if any(a.actor.id == actor.id for a in change.approvals):
        return _refuse("click.already-given", change, actor)
    if len(given) + 1 < planned.approvals:
        values: dict[str, str | int | float | None] = {"change": change.id, "actor": actor.id, "act": "confirm"}
        values["missing"] = planned.approvals - len(given) - 1
        return Finding(code="click.more-needed", effect="allow", values=values)
    return _ok(change, actor, "confirm")


def _alone(change: Change, act: Act, actor: Actor) -> Finding:
    """Their own plan, in an emergency: once, with a click on what was shown, while they have the role."""
    emergency = change.planned.emergency if change.planned is not None else None
    if emergency is None or emergency.by not in actor.roles:
        return _refuse("click.no-emergency", change, actor, by=emergency.by if emergency is not None else None)
    if act.digest is None:
        return _refuse("click.emergency-unseen", change, actor)
    return _ok(change, actor, "confirm")


def _ratify(change: Change, actor: Actor, now: float) -> Finding:
    found = ratification(change)
    if change.override is None or change.state not in OVERRIDDEN or found.word in {"none", "moot"}:
        return _refuse("click.nothing-to-ratify", change, actor, state=change.state)
    if found.word == "ratified":
        return _refuse("click.ratified-already", change, actor, by=found.by.id if found.by is not None else None)
    if found.word == "lapsed" or now >= found.until:
        return _refuse("click.ratified-late", change, actor, until=found.until)
    if _is_requester(change, actor):
        return _refuse("click.self-ratified", change, actor)
    if change.override.ratify_by not in actor.roles:
        return _refuse("click.may-not-ratify", change, actor, by=change.override.ratify_by)
    return _ok(change, actor, "ratify")


def _deny(change: Change, actor: Actor) -> Finding:
    if change.state != "planned":
        return _wrong_state(change, actor, "deny")
    if not _approver(change, actor) and not _is_requester(change, actor):
        return _refuse("click.not-approver", change, actor, by=_by(change))
    return _ok(change, actor, "deny")


def _abort(change: Change, actor: Actor, fleet: Fleet) -> Finding:
    if change.state not in {"planned", "approved", "running", "unknown"} or change.undoing:
        return _wrong_state(change, actor, "abort")
    if change.abort is not None:
        return _refuse("click.abort-already", change, actor)
    return _ok(change, actor, "abort") if _party(change, actor, fleet) else _refuse("click.not-party", change, actor)


def _on_held(change: Change, act: Act, actor: Actor, fleet: Fleet) -> Finding:
    if change.state != "held":
        return _wrong_state(change, actor, act.kind)
    if act.kind == "keep":
        # Keeping a state that no gate vouches for is a new decision: four eyes again.
        if _is_requester(change, actor):
            return _refuse("click.self-approval", change, actor)
        if not _approver(change, actor):
            return _refuse("click.not-approver", change, actor, by=_by(change))
        return _ok(change, actor, "keep")
    if act.kind == "undo" and change.plan is not None and not change.plan.undo:
        return _refuse("click.nothing-to-undo", change, actor)
    if act.kind == "retry" and not may_retry(change):
        return _refuse("click.nothing-to-retry", change, actor)
    return _ok(change, actor, act.kind) if _party(change, actor, fleet) else _refuse("click.not-party", change, actor)


def may_retry(change: Change) -> bool:
    """A gate failed and can be looked at again, or a host did not say how things stand and can be asked again."""
    if change.looks_again:
        return True
    return isinstance(change.last, Held) and any(finding.code in ASK_AGAIN for finding in change.last.findings)


def _party(change: Change, actor: Actor, fleet: Fleet) -> bool:
    """The requester, an approver, or anybody in a role that may ask for changes."""
    asking = {rule.ask for rule in fleet.rules if rule.ask}
    return _is_requester(change, actor) or _approver(change, actor) or bool(asking & set(actor.roles))


def _wrong_state(change: Change, actor: Actor, act: str) -> Finding:
    decided_by = change.approvals[-1].actor.id if change.approvals else None
    return _refuse("click.wrong-state", change, actor, act=act, state=change.state, decided_by=decided_by)


def still_valid(change: Change, fleet: Fleet, now: float) -> Finding | None:
    """Checked again when the work starts: why the approvals no longer carry; None when they do.

    A role that lists users in the fleet file is read again; membership of a Slack group is as it was at the click.
    """
    planned = change.planned
    if planned is None:
        return None
    if now >= planned.expires_at:
        values: dict[str, str | int | float | None] = {"change": change.id, "expires_at": planned.expires_at}
        return Finding(code="approval.expired", effect="refuse", values=values)
    if _by(change) is None or (change.asked is not None and change.asked.undoes is not None):
        return None  # no rule asks for an approver: the approval stands in the requester's name
    for given in change.approvals:
        by = _by(change)
        if planned.emergency is not None and alone(change, given.actor):
            by = planned.emergency.by
        role = fleet.roles.get(by or "")
        listed = role is not None and given.actor.id in role.users
        if role is None or not (listed or (role.groups and by in given.actor.roles)):
            values = {"change": change.id, "actor": given.actor.id, "by": by}
            return Finding(code="approval.role-lost", effect="refuse", values=values)
    return None


def reminder_at(change: Change) -> float | None:
    """When those who may approve are reminded, once a plan; None when there is nothing to remind of, or they were.

    Units: epoch seconds.
    """
    planned = change.planned
    if change.state != "planned" or planned is None or planned.dry or not planned.approvals or change.reminded:
        return None
    half = (change.planned_at + planned.expires_at) / 2
    return max(planned.expires_at - REMIND_BEFORE_S, half)
