"""Suspicions on cards: what a revert left, the list of what can be given back, and the reminder of a review."""

from __future__ import annotations

from collections.abc import Sequence

from bot.cards import buttons, evidence
from bot.cards.blame import spoken_against
from bot.cards.kit import Block, Card, actions, made, section
from bot.causes import cause_line
from bot.markup import Markup, joined
from bot.messages import say
from policies.events import Succeeded
from policies.suspicion import Price, Standing, Suspicion, next_review
from workers.suspicions import Kept, Way

MOST_LISTED = 15
MOST_PRICES = 6
MOST_BESIDE = 5
SETTLED = {
    "reclaimed": "suspicion.is-reclaimed",
    "confirmed": "suspicion.is-confirmed",
    "refuted": "suspicion.is-refuted",
}


def opened(end: Succeeded) -> list[Markup]:
    """What a revert left, for its last line and its card; nothing for other changes."""
    suspicion = end.suspicion
    if suspicion is None:
        return [cause_line(end.cause)] if end.cause is not None else []
    said = joined([
        say("cause.not-established"),
        _price(suspicion),
        say("suspicion.review", owner=suspicion.owner, review_at=suspicion.review_at),
        say("suspicion.listed-by"),
    ])  # fmt: skip
    return [say("suspicion.opened", suspicion=suspicion.id, said=said)]


def gave_back(end: Succeeded, before: Succeeded | None) -> list[Markup]:
    """That this change gave back what the one before it took away on suspicion."""
    suspicion = before.suspicion if before is not None else None
    if suspicion is None or any(end.now.get(i) != value for i, value in suspicion.was.items()):
        return []
    return [say("suspicion.closed-reclaimed", suspicion=suspicion.id)]


def reclaim_card(found: Sequence[Kept], at: float) -> Card:
    """Every open suspicion with its price, its age, the ways to get the value back, and a button that plans it."""
    if not found:
        return made(say("suspicion.none"), [section(say("suspicion.none"))])
    head = say("suspicion.head", n=len(found))
    body: list[Block] = [section(f"*{head}*")]
    for kept in found[:MOST_LISTED]:
        body.append(section(*_lines(kept, at)))
        if kept.suspicion.gives_back is not None:
            body.append(actions([buttons.give_back(kept.suspicion)]))
    left = len(found) - MOST_LISTED
    if left > 0:
        body.append(section(say("plan.more-lines", n=left)))
    return made("\n".join([head, *(_line(kept.suspicion, at) for kept in found[:MOST_LISTED])]), body)


def reminder_card(kept: Kept) -> Card:
    """The owner is asked to review. Nothing in it depends on the clock, so that drawing it again gives the same."""
    suspicion = kept.suspicion
    head = say(
        "suspicion.reminder",
        owner=suspicion.owner,
        suspicion=suspicion.id,
        knob=suspicion.knob,
        value=suspicion.value,
        at=suspicion.at,
        reason=suspicion.reason[:300],
    )
    lines = [head, joined([say("cause.not-established"), _price(suspicion), *spoken_against(suspicion.blame)])]
    lines.append(say("suspicion.reminder-next"))
    row = [buttons.give_back(suspicion)] if suspicion.gives_back is not None else []
    return made("\n".join(lines), [section(*lines)], [actions(row)] if row else [])


def settled(suspicion: Suspicion, standing: Standing) -> Markup:
    """What closed it."""
    return say(SETTLED[standing.word], suspicion=suspicion.id, by=standing.by)


def _lines(kept: Kept, at: float) -> list[Markup]:
    suspicion = kept.suspicion
    lines = [joined([_line(suspicion, at), say("cause.not-established")])]
    if kept.record is None:
        lines.append(say("suspicion.unpriced", knob=suspicion.knob, value=suspicion.value))
    else:
        lines += evidence.short((kept.record,), suspicion.knob, suspicion.value, at)
    lines += spoken_against(suspicion.blame)
    if kept.standing.word != "open":
        lines.append(settled(suspicion, kept.standing))
    lines += [_way(way) for way in kept.ways]
    lines.append(say("suspicion.reviewed-next", owner=suspicion.owner, review_at=next_review(suspicion, at)))
    if suspicion.gives_back is None:
        lines.append(say("suspicion.by-name"))
    if kept.beside:
        told = [
            say("suspicion.beside-one", change=change.id, said=change.asked.normalised[:120])
            for change in kept.beside[:MOST_BESIDE]
            if change.asked is not None
        ]
        left = len(kept.beside) - MOST_BESIDE
        lines.append(
            say("suspicion.beside", said=joined(told + ([say("plan.more-lines", n=left)] if left > 0 else [])))
        )
    return lines


def _line(suspicion: Suspicion, at: float) -> Markup:
    values: dict[str, str | float | None] = {
        "suspicion": suspicion.id,
        "knob": suspicion.knob,
        "age_s": max(0.0, at - suspicion.at),
        "owner": suspicion.owner,
        "change": suspicion.change,
        "reason": suspicion.reason[:300],
    }
    if suspicion.gives_back is None:
        return say("suspicion.line-mixed", **values)
    return say("suspicion.line", value=suspicion.value, **values)


def _way(way: Way) -> Markup:
    told = " → ".join(name.partition("@")[0] for name in way.instances)
    parts = [say("plan.order", order=way.order, path=told) if told != way.order else say("plan.restarts", path=told)]
    took = way.estimate
    if took is None:
        parts.append(say("suspicion.way-unknown"))
    else:
        parts.append(say("plan.order-takes", median_s=took.median_s, p90_s=took.p90_s, n=took.n))
    return joined(parts)


def _price(suspicion: Suspicion) -> Markup:
    if suspicion.evidence is None:
        return say("suspicion.unpriced", knob=suspicion.knob, value=suspicion.value)
    ordered = sorted(suspicion.prices, key=lambda price: -abs(price.ratio - 1))
    told = ", ".join(price_text(price) for price in ordered[:MOST_PRICES])
    left = len(ordered) - MOST_PRICES
    return say("suspicion.price", record=suspicion.evidence, prices=f"{told}, {left} more loads" if left > 0 else told)


def price_text(price: Price) -> str:
    """`+12.8 % C64 (n=1, no interval)`, `+5.7 % C96 (n=5, +4.1 to +7.3 %)`."""
    if price.low is None or price.high is None:
        known = "no interval"
    else:
        known = f"{(price.low - 1) * 100:+.1f} to {(price.high - 1) * 100:+.1f} %"
    return f"{(price.ratio - 1) * 100:+.1f} % {price.load} (n={price.n}, {known})"
