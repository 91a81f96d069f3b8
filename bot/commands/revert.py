"""`revert NAME [emergency] because "..."`."""

from __future__ import annotations

from bot.arguments import Arguments
from bot.commands.base import KNOB, CommandWord, options_text, writes
from bot.normalise import Unreadable
from policies.intents import RevertKnob


def _read(arguments: Arguments) -> RevertKnob:
    knob = arguments.knob()
    options = arguments.options("on", "via", "because", "citing", "ticket", "emergency", "dry")
    if options.because is None:
        raise Unreadable(
            "because-missing",
            "a revert needs its reason",
            hint=f'write revert {knob} because "..." with the reason in quotes',
        )
    return RevertKnob(
        knob=knob,
        because=options.because,
        citing=options.citing,
        scope=options.scope,
        order=options.order,
        ticket=options.ticket,
        emergency=options.emergency,
        dry=options.dry,
    )


def _write(intent: RevertKnob) -> str:
    return f"revert {intent.knob}{options_text(intent)}"


COMMAND = CommandWord(
    word="revert",
    families=KNOB,
    usage='revert NAME [emergency] because "..." [citing EXPR, ...] [on SCOPE] [via ORDER] [ticket ID] [dry]',
    about="take the present value away; the reason is judged on what is measured, and shown as your words",
    example='revert TARGET_CTAS because "multi-round hang" citing queue_reqs > 0',
    read=_read,
    write=writes(RevertKnob, _write),
)
