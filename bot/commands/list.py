"""`list [on SCOPE]`."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import KNOB, CommandWord, writes
from policies.intents import ListKnobs


def _read(arguments: Arguments) -> ListKnobs:
    return ListKnobs(scope=arguments.options("on").scope)


def _write(question: ListKnobs) -> str:
    return "list" if question.scope is None else f"list on {question.scope}"


COMMAND = CommandWord(
    word="list",
    families=KNOB,
    usage="list [on SCOPE]",
    about="desired, configured and live values of every knob",
    example="list on decode",
    read=_read,
    write=writes(ListKnobs, _write),
)
