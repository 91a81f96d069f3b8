"""The waves of a plan with replicas: who goes first and is watched, what goes together, how many stay in service."""

from __future__ import annotations

from collections.abc import Sequence

from bot.markup import Markup, joined
from bot.messages import say, sentence
from policies.plan import DrainStep, Plan, Step
from policies.planning.turns import PLAIN, some
from policies.planning.waves import Stage, stages_of

MOST_WAVES = 6
MOST_TOGETHER = 6  # instances of a stage that are named
SAID_ABOVE = frozenset({"plan.mixed", "plan.left-alone", "plan.mixed-after"})


def wave_lines(plan: Plan) -> list[Markup]:
    """A line a wave; one for all where a plan has replicas that go at once. None for a plan without replicas."""
    stages = stages_of(plan.steps)
    total = max((stage.wave for stage in stages), default=1)
    if total == 1:
        together = any(len(stage.instances) > 1 for stage in stages)
        return _floor(plan, stages) if not together else [joined([_at_once(stages), *_floor(plan, stages)])]
    lines = [_wave(plan, number, total, stages) for number in range(1, min(total, MOST_WAVES) + 1)]
    return [*lines, say("plan.wave-more", n=total - MOST_WAVES)] if total > MOST_WAVES else lines


def mixed_lines(plans: Sequence[Plan]) -> list[Markup]:
    """That a fleet is mixed, or will be, and what is left alone; each once for all orders."""
    found = [f for plan in plans for f in plan.warnings if f.code in SAID_ABOVE]
    return [sentence(f) for n, f in enumerate(found) if f not in found[:n]]


def drained(plans: Sequence[Plan]) -> dict[str, DrainStep]:
    """The drains of the plans, by service@host."""
    return {f"{s.service}@{s.host}": s for plan in plans for s in plan.steps if isinstance(s, DrainStep)}


def drain_lines(plans: Sequence[Plan]) -> list[Markup]:
    """Which services are drained first, at which routers and for how long."""
    by_way: dict[tuple[tuple[str, ...], float, str], list[str]] = {}
    for step in drained(plans).values():
        routers = tuple(at.router for at in step.at)
        by_way.setdefault((routers, step.deadline_s, step.over), []).append(step.service)
    lines: list[Markup] = []
    for (routers, deadline_s, over), services in by_way.items():
        code = "plan.drained-restart" if over == "restart" else "plan.drained-hold"
        names = " and ".join(dict.fromkeys(services))
        lines.append(say(code, services=names, routers=some(routers), deadline_s=deadline_s))
    return lines


def rolling_lines(plan: Plan) -> list[Markup]:
    """For Details: the floor of each service, who goes first, why, and what must hold before the next wave."""
    lines: list[Markup] = []
    for one in plan.rolling:
        values = {"most": one.max_unavailable, "replicas": one.replicas, "keep": one.keep}
        lines.append(say("details.floor", service=one.service, **values))
        if (canary := one.canary) is None:
            continue
        if canary.watch_s:
            told = say("details.canary-watched", instance=canary.instance, watch_s=canary.watch_s, why=canary.why)
        else:
            told = say("details.canary", instance=canary.instance, why=canary.why)
        lines.append(told)
        lines += [say("details.require", instance=canary.instance, condition=text) for text in canary.require]
    return lines


def wave_head(steps: Sequence[Step], index: int) -> list[Markup]:
    """The line above the first step of a wave, where there is more than one."""
    total = max(step.wave for step in steps)
    if total == 1 or (index and steps[index - 1].wave == steps[index].wave):
        return []
    return [say("details.wave", n=steps[index].wave, total=total)]


def _at_once(stages: Sequence[Stage]) -> Markup:
    return say("plan.at-once", path=stages_path(stages))


def _wave(plan: Plan, number: int, total: int, stages: Sequence[Stage]) -> Markup:
    mine = [stage for stage in stages if stage.wave == number]
    canaries = [one.canary for one in plan.rolling if one.canary is not None] if number == 1 else []
    path = stages_path(mine)
    if not canaries:
        head = say("plan.wave", n=number, total=total, path=path)
    else:
        names, watch_s = " and ".join(one.instance for one in canaries), max(one.watch_s for one in canaries)
        if watch_s:
            head = say("plan.wave-watched", n=number, total=total, canary=names, watch_s=watch_s, path=path)
        else:
            head = say("plan.wave-canary", n=number, total=total, canary=names, path=path)
    why = [say("plan.canary-why", instance=one.instance, why=one.why) for one in canaries if one.why != PLAIN]
    return joined([head, *why, *_floor(plan, mine)])


def _floor(plan: Plan, stages: Sequence[Stage]) -> list[Markup]:
    """How many replicas of the services of these stages stay in service."""
    services = {i.split("@")[0] for stage in stages for i in stage.instances}
    floors = [
        say("plan.floor-one", keep=one.keep, replicas=one.replicas, service=one.service)
        for one in plan.rolling
        if one.service in services and one.keep
    ]
    return [say("plan.floor", said=joined(floors, " and "))] if floors else []


def stages_path(stages: Sequence[Stage]) -> str:
    """`prefill@gpu1 → decode@gpu1 + decode@gpu2`: what boots side by side is added."""
    return " → ".join(_together(stage.instances) for stage in stages)


def _together(instances: Sequence[str]) -> str:
    more = f" + {len(instances) - MOST_TOGETHER} more" if len(instances) > MOST_TOGETHER else ""
    return " + ".join(instances[:MOST_TOGETHER]) + more
