"""`status [CHANGE]`."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import EVERYWHERE, CommandWord, writes
from policies.intents import Status


def _read(arguments: Arguments) -> Status:
    change = arguments.change(required=False)
    arguments.end()
    return Status(change=change)


def _write(question: Status) -> str:
    return "status" if question.change is None else f"status {question.change}"


COMMAND = CommandWord(
    word="status",
    families=EVERYWHERE,
    usage="status [CHANGE]",
    about="the last 10 changes, or one change",
    example="status C-142",
    read=_read,
    write=writes(Status, _write),
)
