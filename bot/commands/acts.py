"""Words about a change that exists: confirm, deny, abort, keep, undo, retry, ratify."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from bot.arguments import Arguments
from bot.commands.base import EVERYWHERE, CommandWord, writes
from policies.intents import Act

ActWord = Literal["confirm", "deny", "abort", "keep", "undo", "retry", "ratify"]


def _read(word: ActWord) -> Callable[[Arguments], Act]:
    def read(arguments: Arguments) -> Act:
        change = arguments.change(required=True)
        order = None
        if word == "confirm":
            order = arguments.options("via").order
        arguments.end()
        return Act(kind=word, change=change or "", order=order)

    return read


def _write(act: Act) -> str:
    return f"{act.kind} {act.change}" + ("" if act.order is None else f" via {act.order}")


def _act(word: ActWord, about: str, *, usage: str = "", example: str = "") -> CommandWord:
    return CommandWord(
        word=word,
        families=EVERYWHERE,
        usage=usage or f"{word} CHANGE",
        about=about,
        example=example or f"{word} C-142",
        read=_read(word),
        write=writes(Act, lambda act: _write(act) if act.kind == word else None),
    )


COMMANDS = (
    _act(
        "confirm",
        "approve the plan that is shown now",
        usage="confirm CHANGE [via ORDER]",
        example="confirm C-142 via co-restart",
    ),
    _act("deny", "refuse a plan"),
    _act("abort", "stop a change; what was changed is undone"),
    _act("keep", "leave a held change as it is; needs an approval"),
    _act("undo", "take a held change back"),
    _act("retry", "ask the gate of a held change again"),
    _act("ratify", "answer for what somebody else did alone in an emergency"),
)
