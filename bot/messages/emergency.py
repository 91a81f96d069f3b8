"""Emergencies: what may be done without, by whom, and that a second person answers for it or it is taken back."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "emergency.not-declared": (
        "the fleet file says nobody who may override in an emergency; add `emergency: {{by: ROLE, ratify_by: ROLE,"
        " within: 2h}}`, or ask without `emergency`"
    ),
    "emergency.not-yours": (
        "{actor:who} may not override in an emergency, expected a member of {role:code}; ask without `emergency`"
    ),
    "emergency.not-needed": "nothing is in its way, so this is no emergency: it is decided like any other change",
    "emergency.may": (
        "emergency: {actor:who} may confirm this alone, as one of {role:code}; one of {ratify_by:code} has to ratify it"
        " within {within_s:s} of that, or clawback takes it back"
    ),
    "emergency.could": (
        'in an emergency one of {role:code} says the same with `emergency because "..."`; one of {ratify_by:code} has'
        " to ratify it within {within_s:s}, or it is taken back"
    ),
    "emergency.goes-back": "takes back {change}, which nobody ratified in time; no approval is needed for that",
    "freeze.overridden": (
        "the freeze {freeze:code}, which holds until {until:day}{there:or=}, is overridden by this emergency"
    ),
    "evidence.skipped": "emergency: evidence is not asked for ({what:code} would have refused it)",
    "lock.overridden": (
        "emergency: {scope:code} is locked against deploys ({lock}), because {change} took {taken:code} away and nobody"
        " has confirmed yet that it is fixed; this deploys all the same"
    ),
    "emergency.of-freeze": "the freeze {freeze:code}",
    "emergency.of-approvals": "{count:n=approval} of {role:code}",
    "emergency.of-lock": "the lock {lock}",
    "emergency.of-evidence": "{count:n=rule} about evidence",
    "emergency.flag": "*emergency*",
    "emergency.used": (
        "{who} *emergency*: {actor:who} confirmed {order} alone and overrides {what}, because {because:code}; one of"
        " you, not {actor:who}, please ratify until {until:day} with [Ratify] or `ratify {change}`, else clawback takes"
        " it back"
    ),
    "emergency.used-together": (
        "*emergency*: {actor:who} confirmed what overrides {what}, because {because:code}; by that it is ratified"
    ),
    "emergency.reminded": (
        "{who} {change} overrode {what} and nobody has ratified it; that ends {until:day}, then clawback takes it back"
    ),
    "emergency.lapsed": "{who} nobody ratified in time that {change} overrode {what}: {then}",
    "emergency.goes-back-by": "{undo} was asked for, to take it back",
    "emergency.undoes": "it is held, and undone now",
    "emergency.stays": "it stays as it is and is *not ratified*: {why}",
    "emergency.open": (
        "*emergency*: overrides {what} · not ratified yet: one of {role:code}, not {actor:who}, until {until:day}"
    ),
    "emergency.ratified": "emergency: ratified by {actor:who}",
    "emergency.not-ratified": "emergency: *not ratified* in time; {then}",
    "changed.to-be-ratified": "*emergency*, to be ratified until {until:day}",
    "changed.not-ratified": "*emergency*, *not ratified*",
    "step.ratified": "ratified by {actor:who}",
    "ratify.did-not-succeed": "{change} did not end as planned, so what is there has to be looked at by a person",
    "ratify.restart-stays": "{change} changed no value, a restart cannot be taken back",
    "ratify.rollback-stays": (
        "{change} went back to a version that was proven, and what it took away is not deployed again by itself"
    ),
    "ratify.changed-since": "{newest} changed the same since {change}, so going back would undo that too",
    "ratify.no-one-before": "{change} found different values ({found}), so there is no one value to go back to",
    "click.no-emergency": (
        "{actor:who} asked for {change} and may not confirm it alone any more, expected a member of {by:code}; somebody"
        " else must decide"
    ),
    "click.emergency-unseen": (
        "{actor:who} confirms an emergency alone only by the button of its plan, so that it is the plan that was seen;"
        " look at the card of {change} and click there"
    ),
    "click.nothing-to-ratify": "{change} is {state:words} and overrode nothing that waits for a second person",
    "click.ratified-already": "{change} was ratified already, by {by:who}",
    "click.ratified-late": "{change} could be ratified until {until:day}, that is over and it is taken back",
    "click.self-ratified": "{change} was asked by you, {actor:who}: somebody else must ratify it",
    "click.may-not-ratify": "{actor:who} may not ratify {change}, expected a member of the role {by:code}",
}
