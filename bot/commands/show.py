"""`show NAME`."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import KNOB, CommandWord, writes
from policies.intents import ShowKnob


def _read(arguments: Arguments) -> ShowKnob:
    knob = arguments.knob()
    arguments.end()
    return ShowKnob(knob=knob)


COMMAND = CommandWord(
    word="show",
    families=KNOB,
    usage="show NAME",
    about="definition and value of a knob",
    example="show TARGET_CTAS",
    read=_read,
    write=writes(ShowKnob, lambda question: f"show {question.knob}"),
)
