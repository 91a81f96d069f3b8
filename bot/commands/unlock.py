"""`unlock SCOPE`, behind /deploy."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import DEPLOY, CommandWord, writes
from policies.intents import UnlockScope


def _read(arguments: Arguments) -> UnlockScope:
    scope = arguments.scope()
    arguments.end()
    return UnlockScope(scope=scope)


COMMAND = CommandWord(
    word="unlock",
    families=DEPLOY,
    usage="unlock SCOPE",
    about="changes may touch it again; for whoever locked it, and for approvers",
    example="unlock decode",
    read=_read,
    write=writes(UnlockScope, lambda word: f"unlock {word.scope}"),
)
