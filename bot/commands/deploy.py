"""`SERVICE REF`, behind /deploy: another version of a service. After a mention: `deploy SERVICE REF`."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import DEPLOY, CommandWord, options_text, writes
from policies.intents import Deploy


def _read(arguments: Arguments) -> Deploy:
    service, ref = arguments.service(), arguments.ref()
    options = arguments.options("via", "because", "ticket", "emergency", "dry")
    return Deploy(
        service=service,
        ref=ref,
        order=options.order,
        because=options.because,
        ticket=options.ticket,
        emergency=options.emergency,
        dry=options.dry,
    )


def _write(intent: Deploy) -> str:
    return f"deploy {intent.service} {intent.ref}{options_text(intent)}"


COMMAND = CommandWord(
    word="deploy",
    families=DEPLOY,
    usage='SERVICE REF [via ORDER] [[emergency] because "..."] [ticket ID] [dry]',
    about="another version of a service: checked on its hosts before anything is planned, proven afterwards",
    example='decode 2026-11-30-a1b2c3 because "fixes the KV leak"',
    read=_read,
    write=writes(Deploy, _write),
)
