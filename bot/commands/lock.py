"""`lock SCOPE because "..." [for DURATION]`, behind /deploy."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import DEPLOY, CommandWord, writes
from bot.commands.log import duration_text
from bot.normalise import Unreadable
from bot.words import quote
from policies.intents import LockScope


def _read(arguments: Arguments) -> LockScope:
    scope = arguments.scope()
    options = arguments.options("because", "for")
    if options.because is None:
        hint = f'write lock {scope} because "..." with the reason in quotes'
        raise Unreadable("because-missing", "a lock needs its reason", hint=hint)
    return LockScope(scope=scope, because=options.because, for_s=options.for_s)


def _write(word: LockScope) -> str:
    ending = "" if word.for_s is None else f" for {duration_text(word.for_s)}"
    return f"lock {word.scope} because {quote(word.because)}{ending}"


COMMAND = CommandWord(
    word="lock",
    families=DEPLOY,
    usage='lock SCOPE because "..." [for DURATION]',
    about="no change touches a service, a host or service@host until it is opened or the time is over",
    example='lock decode because "profiling" for 2h',
    read=_read,
    write=writes(LockScope, _write),
)
