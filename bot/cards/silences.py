"""Silences at the Alertmanager, a line each in the thread of their change."""

from __future__ import annotations

from bot.markup import Markup
from bot.messages import say
from bot.times import clock
from policies import events as e

ENDED = {
    "ended": "silence.ended",
    "held": "silence.ended-held",
    "gone": "silence.gone",
    "lost": "silence.lost",
    "over": "silence.over",
}
FAILED = {"make": "silence.not-made", "prolong": "silence.not-prolonged", "end": "silence.not-ended"}


def silence_line(entry: e.Entry) -> Markup:
    """What was done, or that it could not be done, with when; nothing for any other event."""
    said = _said(entry.event)
    return Markup(f"{clock(entry.at)} {said}") if said else said


def _said(event: e.Event) -> Markup:
    if isinstance(event, e.SilenceMade):
        return say(
            "silence.made",
            service=event.service,
            silence=event.silence,
            until=event.until,
            matchers=" ".join(event.matchers),
        )
    if isinstance(event, e.SilenceProlonged):
        return say("silence.prolonged", service=event.service, silence=event.silence, until=event.until)
    if isinstance(event, e.SilenceEnded):
        return say(ENDED[event.why], service=event.service, silence=event.silence)
    if isinstance(event, e.SilenceFailed):
        services = ", ".join(event.services)
        if event.until is not None:
            return say("silence.not-ended-yet", services=services, error=event.error, until=event.until)
        return say(FAILED[event.doing], services=services, error=event.error)
    return Markup("")
