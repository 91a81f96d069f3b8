"""What a command is: its word, its help, and how it is read and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bot.arguments import Arguments
from bot.spelling import is_plain_value
from bot.words import quote
from policies.intents import (
    Command,
    Deploy,
    Restart,
    RestoreKnob,
    RevertKnob,
    Rollback,
    SetKnob,
    UnsetKnob,
)
from policies.model import Model

KNOB = ("/knob",)
DEPLOY = ("/deploy",)
CAUSE = ("/cause",)
EVERYWHERE = ("/knob", "/deploy", "/cause")  # words about changes: the same behind both

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class CommandWord:
    """One command. `read` and `write` are each other's reverse; `write` gives None for a command of another word."""

    word: str
    families: tuple[str, ...]
    usage: str
    about: str
    example: str
    read: Callable[[Arguments], Command]
    write: Callable[[Command], str | None]


def writes(makes: type[M], write: Callable[[M], str | None]) -> Callable[[Command], str | None]:
    """`write` for commands of type `makes`, None for all others."""
    return lambda command: write(command) if isinstance(command, makes) else None


def options_text(intent: SetKnob | RestoreKnob | RevertKnob | UnsetKnob | Restart | Deploy | Rollback) -> str:
    """The options of an intent as they are typed, with a blank in front; the scope of a restart is none of them."""
    out = ""
    if not isinstance(intent, (Restart, Deploy, Rollback)) and intent.scope is not None:
        out += f" on {intent.scope}"
    if intent.order is not None:
        out += f" via {intent.order}"
    if intent.emergency:
        out += " emergency"
    if intent.because is not None:
        out += f" because {quote(intent.because)}"
    if isinstance(intent, RevertKnob) and intent.citing:
        out += f" citing {', '.join(quote(one) for one in intent.citing)}"
    if intent.ticket is not None:
        out += f" ticket {intent.ticket}"
    if isinstance(intent, Restart) and intent.anyway:
        out += " anyway"
    return f"{out} dry" if intent.dry else out


def value_text(value: str) -> str:
    """A value as it is typed behind =: plain where that reads back, else in quotes."""
    return value if is_plain_value(value) else quote(value)
