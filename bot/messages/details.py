"""What [Details] answers: diffs, argument lists, gates, undo, and what the digest covers."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "details.head": "*{change}* in full: what would be written and run, and what the digest covers",
    "details.no-plan": "{change} has no plan: it is {state:words}",
    "details.old-plan": "the plan on the card that you saw was replaced; this is the plan that counts now",
    "details.file": "{path:code} on {host}",
    "details.order": "*{order}*, plan {digest:code}",
    "details.write": "{n}. {instance}: write {path:code}",
    "details.remove": "{n}. {instance}: remove {path:code}",
    "details.restart": "{n}. {instance}: {argv:code}, pid {pid:or=none} now",
    "details.gates": "    then {gates}",
    "details.undo": "undo, the same steps back:",
    "details.no-undo": "no value changes, so there is nothing to undo",
    "details.undo-step": "undo {said}",
    "details.target": (
        "{instance}: {variable:code} now {now:value} ({now_by:or=nothing sets it}), then {then:value}"
        " ({then_by:or=nothing sets it})"
    ),
    "details.covers": "the digest covers, beside all of the above:",
    "details.covers-fleet": "fleet file {sha256:sha}",
    "details.covers-file": "{path:code} on {host}: sha256 {sha256:sha}, mode {mode}",
    "details.covers-no-file": "{path:code} on {host}: does not exist",
    "details.covers-life": "{instance}: pid {pid}, started {started}, invocation {invocation:or=unknown}",
    "details.policy": "policy: {said}",
    "details.load": "load, not in the digest: {said}",
}
