"""`reclaim`."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import KNOB, CommandWord, writes
from policies.intents import Reclaim


def _read(arguments: Arguments) -> Reclaim:
    arguments.end()
    return Reclaim()


COMMAND = CommandWord(
    word="reclaim",
    families=KNOB,
    usage="reclaim",
    about="what was taken away on suspicion, what that costs, and how to get it back",
    example="reclaim",
    read=_read,
    write=writes(Reclaim, lambda _: "reclaim"),
)
