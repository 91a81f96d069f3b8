"""Locks: who closed what to changes, why, and until when."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "lock.in-the-way": (
        "{scope:code} is locked ({lock}) by {owner:who} since {at:day}: {because:code}; "
        "`/deploy unlock {scope}` opens it, by {owner:who} or an approver"
    ),
    "lock.after-rollback": (
        "{scope:code} is locked against deploys ({lock}) since {at:day}, when {change} took {taken:code} away (brought"
        " by {brought:or=no change on record}; {owner:who}: {because:or=no reason given}): an approver confirms that"
        " {taken:code} is fixed or will not be deployed again with `/deploy unlock {scope}`; a rollback is not refused"
    ),
    "lock.left": (
        "{scope:code} is locked against deploys now ({lock}), owner {owner:who}, without an end: {taken:code} was taken"
        " away (brought by {brought:or=no change on record}; why: {because:or=no reason given}); an approver confirms"
        " that {taken:code} is fixed or will not be deployed again with `/deploy unlock {scope}`"
    ),
    "lock.confirmed": (
        "{scope:code} is open to deploys again ({lock}): {actor:who} confirms that {taken:code} is fixed or will not be"
        " deployed again"
    ),
    "lock.must-be-confirmed": (
        "{actor:who} may not open {lock} on {scope:code}: an approver has to confirm that {taken:code}, which {change}"
        " took away, is fixed or will not be deployed again"
    ),
    "lock.locked": "{scope:code} is locked ({lock}) by {owner:who}: {because:code}; no change touches {instances}",
    "lock.unlocked": "{scope:code} is open again ({lock}, {because:code})",
    "lock.opened": "opened by {actor:who}",
    "lock.until": "until {until:day}",
    "lock.without-end": "until somebody opens it",
    "lock.there-already": "{scope:code} is locked already ({lock}) by {owner:who}: {because:code}",
    "lock.open-already": "{lock} on {scope:code} was opened by somebody else just now",
    "lock.none": "no lock stands on {scope:code}; held now: {held}",
    "lock.may-not": "{actor:who} may not lock: no rule lets them ask for a change or approve one",
    "lock.not-yours": (
        "{actor:who} may not open {lock} on {scope:code}: it is {owner:who}'s ({because:code}); they or an approver may"
    ),
}
