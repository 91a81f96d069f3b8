"""What a restart would cut, how old that is and how long a stop may take, each with where and when it was read."""

from __future__ import annotations

from collections.abc import Mapping

from bot.markup import Markup, joined
from bot.messages import say, sentence
from policies.finding import Finding
from policies.plan import DrainStep

MOST_INSTANCES = 4
OLDEST = "load.oldest"
STOPS = ("load.stop-timeout", "load.stop-too-short", "load.stop-unlimited")


def load_lines(found: list[Finding], drains: Mapping[str, DrainStep] | None = None) -> list[Markup]:
    """The lines of what is cut, then warnings; findings of several orders, each once.

    drains: of the instances that are drained first, by service@host: of these only what is left at the deadline is cut.
    """
    read = sorted((f for f in found if f.code == "load.in-flight"), key=lambda f: -_number(f, "running"))
    # the idle ones beside busy ones are under Details
    busy = [f for f in read if _number(f, "running") or _number(f, "queued")] or read
    ways: dict[tuple[float, str] | None, list[Finding]] = {}
    for finding in busy:
        step = (drains or {}).get(str(finding.values.get("instance")))
        ways.setdefault((step.deadline_s, step.over) if step is not None else None, []).append(finding)
    told: list[Markup] = []
    for way, cut in ways.items():
        parts = [_on(f) for f in cut[:MOST_INSTANCES]]
        if len(cut) > MOST_INSTANCES:
            parts.append(say("plan.load-many", n=len(cut) - MOST_INSTANCES))
        read_at = min(_number(f, "at") for f in read)  # of the oldest reading
        said = joined(parts, ", ")
        if way is not None:
            code = "plan.load-drained" if way[1] == "restart" else "plan.load-held"
            told.append(say(code, said=said, at=read_at, deadline_s=way[0]))
        else:
            told.append(say("plan.load", said=said, at=read_at))
    if told:
        oldest = [say("plan.load-oldest", older_than_s=_number(f, "older_than_s")) for f in found if f.code == OLDEST]
        told[0] = joined([told[0], *oldest, *_stops(found)])
    told += [say("plan.warning", said=sentence(f)) for f in found if f.code == "load.unknown"][:MOST_INSTANCES]
    return [*told, *_too_short(found)]


def _on(finding: Finding) -> Markup:
    running, queued = _number(finding, "running"), _number(finding, "queued")
    return say("plan.load-on", running=running, queued=queued, instance=finding.values.get("instance"))


def _number(finding: Finding, name: str) -> float:
    value = finding.values.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def left_running(found: tuple[Finding, ...]) -> list[Markup]:
    """What the order leaves running although a restarted service needs it."""
    left = [f for f in found if f.code == "load.left-out"]
    if not left:
        return []
    names = ", ".join(str(f.values.get("left")) for f in left)
    return [sentence(left[0].model_copy(update={"values": {**left[0].values, "left": names}}))]


def _stops(found: list[Finding]) -> list[Markup]:
    stops = [f for f in found if f.code in STOPS]
    limits = {f.values.get("timeout_stop_s") for f in stops}
    if len(limits) == 1:
        limit = limits.pop()
        return [say("plan.stop-all", timeout_s=limit) if limit is not None else say("plan.stop-never-any")]
    each = [_stop(f) for f in stops[:MOST_INSTANCES]]
    return [say("plan.stop-each", said=joined(each, ", "))] if each else []


def _stop(finding: Finding) -> Markup:
    instance, limit = finding.values.get("instance"), finding.values.get("timeout_stop_s")
    if limit is None:
        return say("plan.stop-never", instance=instance)
    return say("plan.stop-one", instance=instance, timeout_s=limit)


def _too_short(found: list[Finding]) -> list[Markup]:
    """One warning for all instances with the same limit."""
    by_limit: dict[object, list[Finding]] = {}
    for finding in found:
        if finding.code == "load.stop-too-short":
            by_limit.setdefault(finding.values.get("timeout_stop_s"), []).append(finding)
    told: list[Markup] = []
    for findings in by_limit.values():
        names = ", ".join(str(f.values.get("instance")) for f in findings[:MOST_INSTANCES])
        one = findings[0].model_copy(update={"values": {**findings[0].values, "instance": names}})
        told.append(say("plan.warning", said=sentence(one)))
    return told
