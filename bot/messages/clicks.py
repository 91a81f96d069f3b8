"""Answers to a word or click about a change: from `policies.approvals`."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "click.ok": "{change}: {act} by {actor:who} is recorded",
    "click.more-needed": "{change}: {act} by {actor:who} is recorded, {missing} more needed before anything starts",
    "click.dry": "{change} was asked as a dry run and is never carried out; ask again without `dry`",
    "click.expired": "{change} could be confirmed until {expires_at:at}, that is over; ask again",
    "click.no-such-order": "{change} has no restart order {order:code}, expected one of: {orders}",
    "click.old-plan": (
        "the plan of {change} that you saw is no longer the plan that would be carried out; look at its card again"
    ),
    "click.self-approval": (
        "{change} was asked by you, {actor:who}, so somebody else must decide: the requester is never an approver"
    ),
    "click.not-approver": "{actor:who} may not decide {change}, expected a member of the role {by:code}",
    "click.already-given": "{actor:who} has confirmed {change} already; a second approval must come from somebody else",
    "click.abort-already": "{change} is being aborted already; it stops after the gate of the restart that runs",
    "click.not-party": (
        "{actor:who} may not say this about {change}, expected its requester, an approver or somebody who may ask"
    ),
    "click.nothing-to-retry": "no gate of {change} has failed, so there is none to look at again",
    "click.wrong-state": (
        "{act} has no meaning for {change} now: it is {state:words}, confirmed by {decided_by:who}; nothing was changed"
    ),
    "click.no-such-change": (
        "no change {change:code} is recorded, expected an id such as C-142; `status` lists the last ones"
    ),
    "click.unreadable": "this button carries nothing that can be read; look at the newest card of the change",
    "click.stale": "this click is {age_s:s} old; nothing was done: look at the card and click again",
    "click.stale-word": "this {act} is {age_s:s} old; nothing was done: look at the card and say it again",
    # the same in a few words, for the thread
    "refused.expired": "the time to confirm is over",
    "refused.old-plan": "the plan that was seen is not the plan any more",
    "refused.self-approval": "the requester is never an approver",
    "refused.not-approver": "not a member of the role {by:code}",
    "refused.already-given": "they have confirmed already",
    "refused.not-party": "neither requester nor approver nor somebody who may ask",
    "refused.wrong-state": "the change is {state:words}",
    "approval.expired": (
        "the approvals of {change} held until {expires_at:at}, that is over; nothing was started, ask again"
    ),
    "approval.role-lost": (
        "{actor:who} confirmed {change} but is not in the role {by:code} any more; nothing was started, ask again"
    ),
}
