"""The proof ladder in words."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "proof.present": "{value:value} in the environment of {instance} pid {pid}",
    "proof.absent": "{variable:code} not in the environment of {instance} pid {pid}",
    "proof.other": "{instance} pid {pid} has {found:value}, expected {wanted:value}",
    "proof.children-unreadable": "children unreadable: renamed ({n} of {of})",
    "proof.children-forbidden": "children not readable: no permission ({n} of {of})",
    "proof.children-agree": "{n} of {of} children agree",
    "proof.children-differ": "{n} of {of} children differ",
    "proof.children-vanished": "{n} of {of} children ended while they were read",
    "proof.main-unread": "{instance} pid {pid}: environment {answer}",
    "proof.no-process": "{instance}: no process was read",
    "proof.reported": "the engine reports {reported:value}",
    "proof.verdict": "{instance}: {verdict}, proven up to {rung}",
    "proof.nothing": "nothing was measured",
}
