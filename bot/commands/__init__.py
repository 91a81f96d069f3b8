"""The words that can be typed, one file a command. `show` is the smallest: copy it, then add it to COMMANDS.

>>> [line.usage for line in help_lines("show", lambda word: True)]
['show NAME']
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bot.commands import (
    acts,
    cause,
    deploy,
    dispute,
    evidence,
    help,  # noqa: A004 - named after the words, as are the others
    history,
    list,  # noqa: A004
    lock,
    log,
    reclaim,
    restart,
    restore,
    revert,
    rollback,
    set,  # noqa: A004
    show,
    status,
    unlock,
    unset,
    verify,
    why,
    why_cause,
)
from bot.commands.base import CommandWord

COMMANDS: tuple[CommandWord, ...] = (
    set.COMMAND,
    restore.COMMAND,
    revert.COMMAND,
    unset.COMMAND,
    deploy.COMMAND,
    rollback.COMMAND,
    restart.COMMAND,
    reclaim.COMMAND,
    cause.COMMAND,
    why_cause.COMMAND,
    dispute.COMMAND,
    verify.COMMAND,
    list.COMMAND,
    show.COMMAND,
    evidence.COMMAND,
    why.COMMAND,
    history.COMMAND,
    log.COMMAND,
    lock.COMMAND,
    unlock.COMMAND,
    status.COMMAND,
    *acts.COMMANDS,
    help.COMMAND,
)


@dataclass(frozen=True, slots=True)
class HelpLine:
    """One command in a help answer. The usage names the family where that is not /knob."""

    word: str
    usage: str
    about: str
    example: str


def find(word: str, family: str | None = None) -> CommandWord | None:
    """The command of a word in lower case: that of the family, else the first there is."""
    found = [one for one in COMMANDS if one.word == word]
    return next((one for one in found if family in one.families), found[0] if found else None)


def help_lines(command: str | None, allowed: Callable[[str], bool]) -> tuple[HelpLine, ...]:
    """Help for one command, or for all: those that `allowed(word)` says this person may run, in the order above."""
    return tuple(
        HelpLine(one.word, _with_family(one, one.usage), one.about, _with_family(one, one.example))
        for one in COMMANDS
        if command in {None, one.word} and allowed(one.word)
    )


def _with_family(one: CommandWord, text: str) -> str:
    return text if "/knob" in one.families else f"{one.families[0]} {text}"
