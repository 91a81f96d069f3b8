"""`why NAME`, behind /knob."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import KNOB, CommandWord, writes
from policies.intents import WhyKnob


def _read(arguments: Arguments) -> WhyKnob:
    knob = arguments.knob()
    arguments.end()
    return WhyKnob(knob=knob)


COMMAND = CommandWord(
    word="why",
    families=KNOB,
    usage="why NAME",
    about="where a knob's value comes from: the change, its people, evidence, suspicions, causes",
    example="why TARGET_CTAS",
    read=_read,
    write=writes(WhyKnob, lambda question: f"why {question.knob}"),
)
