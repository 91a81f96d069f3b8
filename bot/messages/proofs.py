"""The proof ladder in words."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "proof.in-environment": "{value:value} in the environment of {instance} pid {pid}",
    "proof.not-in-environment": "{variable:code} not in the environment of {instance} pid {pid}",
    "proof.differs": "{instance} pid {pid} has {found:value}, expected {wanted:value}",
    "proof.children-unreadable": "{n} of {of} children unreadable: renamed",
    "proof.children-forbidden": "{n} of {of} children unreadable: no permission",
    "proof.children-agree": "{n} of {of} children agree",
    "proof.children-differ": "{n} of {of} children differ",
    "proof.children-vanished": "{n} of {of} children ended while they were read",
    "proof.main-unread": "{instance} pid {pid}: environment {answer}",
    "proof.no-process-read": "{instance}: no process was read",
    # from policies.proof
    "proof.absent": "pid {pid} ({name}) does not have it",
    "proof.present-unwanted": "pid {pid} ({name}) has {value:value}, expected none",
    "proof.other-value": "pid {pid} ({name}) has {value:value}, expected {wanted:value}",
    "proof.no-process": "no process was read",
    "proof.not-reported": "the engine does not report {variable:code}",
    "proof.reported": "the engine reports {value:value}",
    "proof.reported-other": "the engine reports {value:value}, expected {wanted:value}",
    "proof.will-not-start": "the unit's files do not let it start: {variable:code} is {value:value} there",
    "proof.effective-uncertain": "not every file that could set {variable:code} was read",
    "proof.effective-other": (
        "at its next start {variable:code} would be {value:value} ({decided_by:or=nothing sets it}), expected"
        " {wanted:value}"
    ),
    "proof.healthy": "{instance} health {status}",
    "proof.not-healthy": "{instance} health {status:or=no answer}, expected 200",
    "proof.health": "health {statuses}",
    "proof.verdict": "{instance}: {verdict}, proven up to {rung}",
    "proof.nothing": "nothing was measured",
}
