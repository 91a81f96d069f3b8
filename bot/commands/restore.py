"""`restore NAME[=VALUE]`."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import KNOB, CommandWord, options_text, value_text, writes
from policies.intents import RestoreKnob


def _read(arguments: Arguments) -> RestoreKnob:
    knob, value = arguments.assignment(value_required=False)
    options = arguments.options("on", "via", "ticket", "dry")
    return RestoreKnob(
        knob=knob, value=value, scope=options.scope, order=options.order, ticket=options.ticket, dry=options.dry
    )


def _write(intent: RestoreKnob) -> str:
    value = "" if intent.value is None else f"={value_text(intent.value)}"
    return f"restore {intent.knob}{value}{options_text(intent)}"


COMMAND = CommandWord(
    word="restore",
    families=KNOB,
    usage="restore NAME[=VALUE] [on SCOPE] [via ORDER] [ticket ID] [dry]",
    about="bring back a value that was live before and was taken away",
    example="restore TARGET_CTAS=512",
    read=_read,
    write=writes(RestoreKnob, _write),
)
