"""What policy says: who may ask, who must agree, values, freezes."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "rule.may-ask": "{actor:who} may ask, as one of {role:code} (line {line} of the fleet file)",
    "rule.may-not-ask": (
        "{actor:who} may not ask for this, expected a member of {role:code} (line {line} of the fleet file)"
    ),
    "rule.no-rule-says-who-may-ask": (
        "no rule of the fleet file says who may {intent} {subject:code}, so nobody may; add a rule with `ask`"
    ),
    "rule.no-rule-says-approvals": (
        "no rule of the fleet file says how many must approve a {intent} of {subject:code}, so it is refused;"
        " add a rule with `approvals`"
    ),
    "rule.needs-approval": "needs {count} of {role:code}, not {actor:who} (line {line} of the fleet file)",
    "rule.approver-roles-differ": (
        "rules that match ask for approvers of different roles ({roles}), expected one role; change the fleet file"
    ),
    "value.control-character": (
        "{value:code} holds a character that cannot be printed, expected {expected} for {knob:code}"
    ),
    "value.type": "{value:code} is no value of {knob:code}, expected {expected}",
    "value.not-listed": "{value:code} is not a listed value of {knob:code}, expected {expected}",
    "value.pattern": "{value:code} is no value of {knob:code}, expected {expected}",
    "value.range": "{value:code} is outside the range of {knob:code}, expected {expected}",
    "freeze.in-force": (
        "the freeze {freeze:code} holds until {until:day}{there:or=}; nothing is changed before, except back"
    ),
    "freeze.taking-back-is-allowed": (
        "the freeze {freeze:code} holds until {until:day}{there:or=}; taking a change back is allowed"
    ),
    "ticket.missing": (
        "this needs the id of an incident or ticket (line {line} of the fleet file, expected {pattern:or=any id});"
        " add it, as in `ticket INC-123`"
    ),
    "ticket.other-pattern": (
        "{ticket:code} is not a ticket as line {line} of the fleet file wants it, expected one that matches"
        " {pattern:code}"
    ),
    "policy.no-word": "nothing had to be decided",
}
