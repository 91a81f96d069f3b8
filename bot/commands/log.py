"""`log [since DURATION] [ticket ID]`, behind /deploy."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import DEPLOY, CommandWord, writes
from policies.intents import Log

UNITS_S = {"d": 86_400, "h": 3600, "m": 60, "s": 1}


def _read(arguments: Arguments) -> Log:
    since_s = arguments.since()
    ticket = arguments.ticket()
    arguments.end()
    return Log(since_s=since_s, ticket=ticket)


def _write(question: Log) -> str:
    since = "" if question.since_s is None else f" since {duration_text(question.since_s)}"
    return f"log{since}" + ("" if question.ticket is None else f" ticket {question.ticket}")


def duration_text(seconds: float) -> str:
    """A time as it is typed: `2h`, `90s`."""
    whole = int(seconds)
    unit, size = next((unit, size) for unit, size in UNITS_S.items() if whole % size == 0)
    return f"{whole // size}{unit}"


COMMAND = CommandWord(
    word="log",
    families=DEPLOY,
    usage="log [since DURATION] [ticket ID]",
    about="what changed, by changes and outside of them, and what is not watched; or the changes of a ticket",
    example="log since 2h",
    read=_read,
    write=writes(Log, _write),
)
