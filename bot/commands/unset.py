"""`unset NAME`."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import KNOB, CommandWord, options_text, writes
from policies.intents import UnsetKnob


def _read(arguments: Arguments) -> UnsetKnob:
    knob = arguments.knob()
    options = arguments.options("on", "via", "because", "ticket", "emergency", "dry")
    return UnsetKnob(
        knob=knob,
        scope=options.scope,
        order=options.order,
        because=options.because,
        ticket=options.ticket,
        emergency=options.emergency,
        dry=options.dry,
    )


def _write(intent: UnsetKnob) -> str:
    return f"unset {intent.knob}{options_text(intent)}"


COMMAND = CommandWord(
    word="unset",
    families=KNOB,
    usage='unset NAME [on SCOPE] [via ORDER] [[emergency] because "..."] [ticket ID] [dry]',
    about="take a knob out of the environment",
    example="unset TARGET_CTAS dry",
    read=_read,
    write=writes(UnsetKnob, _write),
)
