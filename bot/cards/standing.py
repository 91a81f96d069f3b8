"""Which replica has what, where they differ: one by one as it was read, and the way back to one value."""

from __future__ import annotations

from bot.cards.story import knob_of
from bot.markup import Markup, joined
from bot.messages import say
from policies.change import Change
from policies.standing import Stand, Standing, spread


def mixed_now(change: Change) -> list[Markup]:
    """What each replica had when the change last stopped or ended; nothing where all have the same."""
    told = None if change.standing is None else standing_line(change.standing)
    if told is None:
        return []
    return [joined([told, *_way_back(change)])]


def standing_line(standing: Standing) -> Markup | None:
    """`mixed: 512 on decode@gpu1; unset on decode@gpu2`; None where all were read and have the same."""
    if not standing.mixed and not standing.unsure:
        return None
    found = joined([_group(standing, one, names) for one, names in spread(standing)], "; ")
    return say("mixed.now" if standing.mixed else "mixed.not-known", found=found, at=standing.at)


def _group(standing: Standing, one: Stand, names: tuple[str, ...]) -> Markup:
    instances = ", ".join(names)
    match one.word:
        case "has":
            code = "mixed.has" if standing.of == "value" else "mixed.has-version"
            return say(code, value=one.value, instances=instances)
        case "unset":
            return say("mixed.unset", instances=instances)
        case "down":
            return say("mixed.down", instances=instances)
        case "unknown":
            return say("mixed.unknown", instances=instances, why=one.why)


def _way_back(change: Change) -> list[Markup]:
    """What to ask for next, where the change itself offers no undo any more."""
    plan, standing = change.plan, change.standing
    if plan is None or standing is None or not change.ended:
        return []
    before = {t.now for t in plan.targets}
    if len(before) != 1:
        return []
    value = before.pop()
    knob = None if change.asked is None else knob_of(change.asked.intent)
    if plan.deploy is not None:
        command = None if value is None else f"/deploy {plan.deploy.service} {value}"
    else:
        command = f"/knob unset {knob}" if value is None else f"/knob set {knob}={value}"
    return [] if command is None else [say("mixed.way-back", of=standing.of, command=command)]
