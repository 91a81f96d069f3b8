"""What keeps one change from being overtaken by another, or by somebody who works on a host by hand."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "plan.held-by": (
        "{change} is held on {instances} and waits for a person; undo it, keep it or retry its gate first, so that"
        " undoing it later cannot undo this one with it"
    ),
    "plan.already-taken-away": (
        "{knob:code} was taken away by the last change ({word}), so there is nothing to revert; ask for the value with"
        " restore or set, so that its evidence is judged"
    ),
    "plan.live-differs": (
        "{instance}: the process that runs (pid {pid}) has {live:value}, but its files give {configured:value};"
        " an undo goes back to what the files give"
    ),
    "hold.files-moved": (
        "{instance}: {paths} changed since the plan, so what a restart would start is not what was approved;"
        " it was not restarted; look at the file, then undo or keep, and ask again"
    ),
    "click.planned-again": (
        "{change} was planned again {ago_s:s} ago and a typed word does not say which plan it means;"
        " look at the new card and click there, or say it again in half a minute"
    ),
}
