"""`rollback SERVICE`, behind /deploy: to the last version that is proven good, which is not always the one before."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import DEPLOY, CommandWord, options_text, writes
from policies.intents import Rollback


def _read(arguments: Arguments) -> Rollback:
    service = arguments.service()
    options = arguments.options("via", "because", "ticket", "emergency", "dry")
    return Rollback(
        service=service,
        order=options.order,
        because=options.because,
        ticket=options.ticket,
        emergency=options.emergency,
        dry=options.dry,
    )


def _write(intent: Rollback) -> str:
    return f"rollback {intent.service}{options_text(intent)}"


COMMAND = CommandWord(
    word="rollback",
    families=DEPLOY,
    usage='rollback SERVICE [via ORDER] [[emergency] because "..."] [ticket ID] [dry]',
    about="back to the last version that was proven good and not taken back since",
    example='rollback decode because "5xx since the deploy"',
    read=_read,
    write=writes(Rollback, _write),
)
