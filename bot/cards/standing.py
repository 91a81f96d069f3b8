"""Which replica has what, where they differ: one by one as it was read, and the way back to one value."""

from __future__ import annotations

from bot.cards.story import knob_of
from bot.markup import Markup, joined
from bot.messages import say
from policies.change import Change
from policies.standing import Stand, Standing, spread
from workers.look import InstanceValue, KnobLook


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
    return say("mixed.now" if standing.mixed else "mixed.not-known", found=_found(standing), at=standing.at)


def mixed_values(look: KnobLook) -> list[Markup]:
    """That the replicas of a service run with different values of a knob now; nothing where they do not."""
    services: dict[str, list[Stand]] = {}
    for value in look.values:
        services.setdefault(value.instance.split("@")[0], []).append(_stand(value))
    standings = (Standing(of="value", at=0.0, stands=tuple(stands)) for stands in services.values())
    return [say("mixed.knob", knob=look.knob.name, found=_found(one)) for one in standings if one.mixed]


def _stand(value: InstanceValue) -> Stand:
    match value.live_answer:
        case "present":
            return Stand(instance=value.instance, word="has", value=value.live)
        case "absent":
            return Stand(instance=value.instance, word="unset")
        case "no-process":
            return Stand(instance=value.instance, word="down")
        case _:
            return Stand(instance=value.instance, word="unknown", why=f"its environment is {value.live_answer}")


def _found(standing: Standing) -> Markup:
    return joined([_group(standing, one, names) for one, names in spread(standing)], "; ")


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
