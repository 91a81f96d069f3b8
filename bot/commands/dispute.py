"""`dispute STATEMENT because "..."`, behind /cause."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import CAUSE, CommandWord, writes
from bot.normalise import Unreadable
from bot.words import quote
from policies.intents import DisputeStatement


def _read(arguments: Arguments) -> DisputeStatement:
    statement = arguments.statement()
    options = arguments.options("because")
    if options.because is None:
        raise Unreadable(
            "because-missing",
            "a dispute needs its reason",
            hint=f'write dispute {statement} because "..." with the reason in quotes',
        )
    return DisputeStatement(statement=statement, because=options.because)


def _write(said: DisputeStatement) -> str:
    reason = "" if said.because is None else f" because {quote(said.because)}"
    return f"dispute {said.statement}{reason}"


COMMAND = CommandWord(
    word="dispute",
    families=CAUSE,
    usage='dispute STATEMENT because "..."',
    about="contest what was stated: it is judged once more, and struck through when it does not hold",
    example='dispute st-3 because "the probe queued behind live traffic"',
    read=_read,
    write=writes(DisputeStatement, _write),
)
