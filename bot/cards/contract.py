"""What is offered where one side of a contract was asked for alone: the same as one change on all."""

from __future__ import annotations

from bot.cards import buttons
from bot.cards.kit import Block
from bot.grammar import render
from bot.markup import Markup
from bot.messages import say
from policies import events as e
from policies.change import Change
from policies.intents import Deploy, KnobIntent, Restart, Rollback


def on_all(change: Change) -> KnobIntent | None:
    """What was refused for one side, asked for everywhere; None where it was refused for something else."""
    last, asked = change.last, change.asked
    if asked is None or isinstance(asked.intent, (Restart, Deploy, Rollback)) or not isinstance(last, e.Refused):
        return None
    if all(one.code != "contract.one-side" for one in last.findings):
        return None
    return asked.intent.model_copy(update={"scope": None})


def lines(change: Change) -> list[Markup]:
    """The words to type."""
    intent = on_all(change)
    return [] if intent is None else [say("contract.as-one", words=f"/knob {render(intent)}")]


def row(change: Change) -> list[Block]:
    """The button that plans it."""
    intent = on_all(change)
    return [] if intent is None else [buttons.together(change.id, f"Plan it on all of {intent.knob}")]
