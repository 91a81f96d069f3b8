"""`clawback confirm C-1` and the other words about a change: deny, abort, keep, undo, retry."""

from __future__ import annotations

import click

from bot.cli import talk
from bot.spelling import change_id
from bot.words import Word
from policies.intents import Act

ABOUT = {
    "deny": "Say no to a plan.",
    "abort": "Stop after the gate of the restart that runs, then undo.",
    "keep": "Leave a held change as it is; needs an approver who did not ask for it.",
    "undo": "Undo a held change.",
    "retry": "Look at the failed gate of a held change again.",
    "ratify": "Answer for what somebody else did alone in an emergency.",
}


@click.command(name="confirm")
@click.argument("change")
@click.option("--via", "order", help="The restart order; the first one of the plan when left out.")
@talk.options
def confirm(change: str, order: str | None, pose: str | None, *, wait: bool, yes: bool, as_json: bool) -> None:
    """Approve the plan of CHANGE, for example C-7. Whoever asked for it never may, here or in Slack.

    Exits 0 when the approval was recorded (with --wait: when the change succeeded), 1 when the answer is no.
    """
    word = Act(kind="confirm", change=_change(change), order=order)
    talk.act(talk.open_terminal(pose, as_json=as_json), word, wait=wait, yes=yes)


def _make(kind: str) -> click.Command:
    @click.command(name=kind, help=f"{ABOUT[kind]}\n\nExits 0 when it was accepted, 1 when the answer is no.")
    @click.argument("change")
    @talk.options
    def word(change: str, pose: str | None, *, wait: bool, yes: bool, as_json: bool) -> None:
        found = Act.model_validate({"kind": kind, "change": _change(change)})
        talk.act(talk.open_terminal(pose, as_json=as_json), found, wait=wait, yes=yes)

    return word


def _change(typed: str) -> str:
    return change_id(Word(typed))


deny = _make("deny")
abort = _make("abort")
keep = _make("keep")
undo = _make("undo")
retry = _make("retry")
ratify = _make("ratify")
