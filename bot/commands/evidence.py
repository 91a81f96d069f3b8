"""`evidence NAME` asks what is recorded of a knob; `evidence add` opens the form to record more."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import KNOB, CommandWord
from policies.intents import Command, EvidenceAdd, EvidenceOf

ADD = "add"


def _read(arguments: Arguments) -> EvidenceOf | EvidenceAdd:
    if arguments.keyword(ADD):
        arguments.end()
        return EvidenceAdd()
    knob = arguments.knob()
    arguments.end()
    return EvidenceOf(knob=knob)


def _write(command: Command) -> str | None:
    if isinstance(command, EvidenceAdd):
        return f"evidence {ADD}"
    return f"evidence {command.knob}" if isinstance(command, EvidenceOf) else None


COMMAND = CommandWord(
    word="evidence",
    families=KNOB,
    usage="evidence NAME | evidence add",
    about=(
        "what is recorded of a knob's worth, judged, with pictures; add opens a form for result files, also for files"
        " that are dropped here with a mention of the app"
    ),
    example="evidence TARGET_CTAS",
    read=_read,
    write=_write,
)
