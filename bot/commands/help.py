"""`help [COMMAND]`. Whether the word exists is checked in `bot.grammar`, which knows all of them."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import EVERYWHERE, CommandWord, writes
from policies.intents import Help


def _read(arguments: Arguments) -> Help:
    command = arguments.word()
    arguments.end()
    return Help(command=command)


def _write(question: Help) -> str:
    return "help" if question.command is None else f"help {question.command}"


COMMAND = CommandWord(
    word="help",
    families=EVERYWHERE,
    usage="help [COMMAND]",
    about="what you may run, or one command",
    example="help restore",
    read=_read,
    write=writes(Help, _write),
)
