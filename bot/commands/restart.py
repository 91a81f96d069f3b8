"""`restart SCOPE`, behind /deploy: services are restarted behind the same gates, and no value is changed."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import DEPLOY, CommandWord, options_text, writes
from bot.normalise import Unreadable
from policies.intents import Restart


def _read(arguments: Arguments) -> Restart:
    scope = arguments.scope()
    options = arguments.options("via", "because", "ticket", "emergency", "anyway", "dry")
    if options.anyway and options.because is None:
        hint = f'write restart {scope} anyway because "..."'
        raise Unreadable("anyway-needs-because", "a restart against what the readings say needs a reason", hint=hint)
    return Restart(
        scope=scope,
        order=options.order,
        because=options.because,
        anyway=options.anyway,
        ticket=options.ticket,
        emergency=options.emergency,
        dry=options.dry,
    )


def _write(intent: Restart) -> str:
    return f"restart {intent.scope}{options_text(intent)}"


COMMAND = CommandWord(
    word="restart",
    families=DEPLOY,
    usage='restart SCOPE [via ORDER] [[emergency] because "..." [anyway]] [ticket ID] [dry]',
    about="restart a service, a host's services or service@host, and change no value",
    example='restart decode via co-restart because "KV held after cut requests"',
    read=_read,
    write=writes(Restart, _write),
)
