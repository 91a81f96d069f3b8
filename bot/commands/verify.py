"""`verify NAME`."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import KNOB, CommandWord, writes
from policies.intents import Verify


def _read(arguments: Arguments) -> Verify:
    knob = arguments.knob()
    arguments.end()
    return Verify(knob=knob)


COMMAND = CommandWord(
    word="verify",
    families=KNOB,
    usage="verify NAME",
    about="how far it is proven that a knob is live, on every instance; changes nothing",
    example="verify TARGET_CTAS",
    read=_read,
    write=writes(Verify, lambda question: f"verify {question.knob}"),
)
