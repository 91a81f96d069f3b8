"""`log [since DURATION]`, behind /deploy."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import DEPLOY, CommandWord, writes
from policies.intents import Log

UNITS_S = {"d": 86_400, "h": 3600, "m": 60, "s": 1}


def _read(arguments: Arguments) -> Log:
    since_s = arguments.since()
    arguments.end()
    return Log() if since_s is None else Log(since_s=since_s)


def _write(question: Log) -> str:
    return "log" if question == Log() else f"log since {duration_text(question.since_s)}"


def duration_text(seconds: float) -> str:
    """A time as it is typed: `2h`, `90s`."""
    whole = int(seconds)
    unit, size = next((unit, size) for unit, size in UNITS_S.items() if whole % size == 0)
    return f"{whole // size}{unit}"


COMMAND = CommandWord(
    word="log",
    families=DEPLOY,
    usage="log [since DURATION]",
    about="what changed: every change, what was done to hosts outside any change, and what is not watched",
    example="log since 2h",
    read=_read,
    write=writes(Log, _write),
)
