"""A change's place in the line, in one sentence."""

from __future__ import annotations

from collections.abc import Mapping

from bot.markup import Markup, joined
from bot.messages import say
from policies import events as e
from policies.change import Change
from policies.line import Place

MINUTE_S = 60.0


def queued(event: e.Queued) -> Markup:
    """`queued behind C-141 on decode@gpu1, position 2, about 3 min (n=7 boots)`; no time without recorded boots."""
    behind, on = ", ".join(event.behind), ", ".join(event.on)
    if event.held is not None:
        return say("queue.behind-held", behind=behind, on=on, position=event.position, held=event.held)
    said = say("queue.behind", behind=behind, on=on, position=event.position)
    if event.left_s is None or event.n is None:
        return said
    return joined([said, say("queue.about", left=about(event.left_s), n=event.n)], ", ")


def place_told(place: Place) -> Markup:
    """The same of a place as it is now."""
    eta = place.eta
    return queued(
        e.Queued(
            position=place.position,
            behind=place.behind,
            on=place.on,
            held=place.held,
            left_s=eta.left_s if eta is not None else None,
            n=eta.n if eta is not None else None,
        )
    )


def waiting_lines(change: Change) -> list[Markup]:
    """What the card of an approved change says of its waiting; nothing where it was never queued."""
    if change.queued is None or change.planned is None:
        return []
    return [queued(change.queued), say("queue.until-approval", until=change.planned.expires_at)]


def line_told(line: Mapping[str, Place]) -> list[Markup]:
    """Everybody who waits, in order."""
    waiting = [place for place in line.values() if place.position > 1]
    if not waiting:
        return []
    told = [say("queue.one", change=place.change, said=place_told(place)) for place in waiting]
    return [say("queue.head", count=len(waiting)), *told]


def about(seconds: float) -> str:
    """A time that is only known roughly: tens of seconds below two minutes, then whole minutes."""
    if seconds < 2 * MINUTE_S:
        return f"{max(1, round(seconds / 10)) * 10} s"
    return f"{round(seconds / MINUTE_S)} min"
