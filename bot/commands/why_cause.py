"""`why CHANGE|SERVICE`, behind /cause."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import CAUSE, CommandWord, writes
from policies.intents import WhyCause


def _read(arguments: Arguments) -> WhyCause:
    about = arguments.change_or_service()
    arguments.end()
    return WhyCause(about=about)


COMMAND = CommandWord(
    word="why",
    families=CAUSE,
    usage="why CHANGE|SERVICE",
    about="what the metrics say, which causes hold, which are refuted, and what is not known",
    example="why C-142",
    read=_read,
    write=writes(WhyCause, lambda question: f"why {question.about}"),
)
