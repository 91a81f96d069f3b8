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
    whole = int(question.since_s)
    unit, size = next((unit, size) for unit, size in UNITS_S.items() if whole % size == 0)
    return "log" if question == Log() else f"log since {whole // size}{unit}"


COMMAND = CommandWord(
    word="log",
    families=DEPLOY,
    usage="log [since DURATION]",
    about="what changed: every change, what was done to hosts outside any change, and what is not watched",
    example="log since 2h",
    read=_read,
    write=writes(Log, _write),
)
