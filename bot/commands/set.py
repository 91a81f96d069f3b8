"""`set NAME=VALUE`."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import KNOB, CommandWord, options_text, value_text, writes
from policies.intents import SetKnob


def _read(arguments: Arguments) -> SetKnob:
    knob, value = arguments.assignment(value_required=True)
    options = arguments.options("on", "via", "because", "ticket", "emergency", "dry")
    return SetKnob(
        knob=knob,
        value=value or "",
        scope=options.scope,
        order=options.order,
        because=options.because,
        ticket=options.ticket,
        emergency=options.emergency,
        dry=options.dry,
    )


def _write(intent: SetKnob) -> str:
    return f"set {intent.knob}={value_text(intent.value)}{options_text(intent)}"


COMMAND = CommandWord(
    word="set",
    families=KNOB,
    usage='set NAME=VALUE [on SCOPE] [via ORDER] [[emergency] because "..."] [ticket ID] [dry]',
    about="give a knob a new value; dry only shows the plan",
    example='set TARGET_CTAS=512 via decode-only because "faster at C64"',
    read=_read,
    write=writes(SetKnob, _write),
)
