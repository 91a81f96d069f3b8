"""The line of changes that wait for their instances, and what happened to one while it waited."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "queue.behind": "queued behind {behind} on {on}, position {position}",
    "queue.behind-held": (
        "queued behind {behind} on {on}, position {position}; {held} is held and waits for a person: `undo`, `keep` or"
        " `retry` it, nothing there begins before"
    ),
    "queue.about": "about {left} (n={n:n=boot})",
    "queue.until-approval": "the approval holds until {until:at}; with no turn by then it has to be asked for again",
    "queue.would-wait": "{behind} comes first on {on}: this would be queued at position {position}",
    "queue.would-wait-s": (
        "{behind} comes first on {on}: this would be queued at position {position}, about {left_s:s} (n={n:n=boot})"
    ),
    "queue.would-wait-held": (
        "{behind} comes first on {on}, and {held} is held and waits for a person: this would be queued at position"
        " {position}"
    ),
    "queue.head": "{count:n=change} waiting",
    "queue.one": "{change} {said}",
    "rebase.restarted": "{change} restarted {instance} meanwhile (pid {was} → {pid})",
    "step.rebased": "as confirmed, with the processes of now: {why}; nothing else differs",
}
