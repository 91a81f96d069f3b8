"""`history NAME`."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import KNOB, CommandWord, writes
from policies.intents import History


def _read(arguments: Arguments) -> History:
    knob = arguments.knob()
    arguments.end()
    return History(knob=knob)


COMMAND = CommandWord(
    word="history",
    families=KNOB,
    usage="history NAME",
    about="everything that happened to a knob, in order: changes, evidence, suspicions, people",
    example="history TARGET_CTAS",
    read=_read,
    write=writes(History, lambda question: f"history {question.knob}"),
)
