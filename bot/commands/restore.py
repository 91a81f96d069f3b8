"""`restore NAME[=VALUE]`."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import KNOB, CommandWord, options_text, value_text, writes
from bot.normalise import Unreadable
from policies.intents import RestoreKnob

USAGE = 'restore NAME[=VALUE] [on SCOPE] [via ORDER] [emergency because "..."] [ticket ID] [dry]'


def _read(arguments: Arguments) -> RestoreKnob:
    knob, value = arguments.assignment(value_required=False)
    options = arguments.options("on", "via", "because", "ticket", "emergency", "dry")
    if options.because is not None and not options.emergency:
        raise Unreadable("option-not-here", '"because" does not go with this command', hint=f"usage: {USAGE}")
    return RestoreKnob(
        knob=knob,
        value=value,
        scope=options.scope,
        order=options.order,
        because=options.because,
        ticket=options.ticket,
        emergency=options.emergency,
        dry=options.dry,
    )


def _write(intent: RestoreKnob) -> str:
    value = "" if intent.value is None else f"={value_text(intent.value)}"
    return f"restore {intent.knob}{value}{options_text(intent)}"


COMMAND = CommandWord(
    word="restore",
    families=KNOB,
    usage=USAGE,
    about="bring back a value that was live before and was taken away",
    example="restore TARGET_CTAS=512",
    read=_read,
    write=writes(RestoreKnob, _write),
)
