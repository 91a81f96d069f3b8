"""`cause "..."` and `cause NAME`. Behind /cause the word itself may be left out."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import CAUSE, CommandWord, writes
from bot.words import quote
from policies.intents import StateCause

WORD = "cause"


def _read(arguments: Arguments) -> StateCause:
    name, text = arguments.cause()
    options = arguments.options("of", "citing")
    return StateCause(name=name, text=text, of=options.of, citing=options.citing)


def _write(said: StateCause) -> str:
    out = f"{WORD} {said.name if said.name is not None else quote(said.text or '')}"
    if said.of is not None:
        out += f" of {said.of}"
    return f"{out} citing {', '.join(quote(one) for one in said.citing)}" if said.citing else out


COMMAND = CommandWord(
    word=WORD,
    families=CAUSE,
    usage='"..."|NAME [of CHANGE] [citing EXPR, ...]',
    about="state why something happened; it is judged on what was measured, and stated only when that holds",
    example="queued-behind-load of C-142",
    read=_read,
    write=writes(StateCause, _write),
)
