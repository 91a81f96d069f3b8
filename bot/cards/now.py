"""Now and then: the value that is there, who gave it and when, and the value that would be."""

from __future__ import annotations

from bot.cards.blame import spoken_against
from bot.cards.story import Brought, Story
from bot.causes import cause_line
from bot.markup import Markup, joined
from bot.messages import say
from policies.plan import Plan, Target

MOST_TARGETS = 4
BROUGHT = {
    "set": "plan.brought-set",
    "restore": "plan.brought-restore",
    "revert": "plan.brought-revert",
    "unset": "plan.brought-unset",
    "deploy": "plan.brought-deploy",
    "rollback": "plan.brought-rollback",
}


def now_lines(story: Story, plan: Plan) -> list[Markup]:
    """Now and then, with who brought the present value and when on the first line."""
    lines = now_then(plan)
    if lines:
        lines[0] = joined([lines[0], *_brought(story.brought, plan.targets, story.change.planned_at)])
    return [*lines, *_read_back(plan)]


def _read_back(plan: Plan) -> list[Markup]:
    """What an instance says that it runs, where nothing that was read names its version."""
    unnamed = {target.instance for target in plan.targets if target.now is None}
    versions = plan.deploy.versions if plan.deploy is not None else ()
    told = [v for v in versions if v.instance in unnamed and v.now is not None][:MOST_TARGETS]
    return [say("plan.runs-now", instance=v.instance, version=v.now) for v in told]


def _variable(plan: Plan) -> bool:
    """The version is the value of a variable in the environment."""
    return any(step.kind == "write" for step in plan.steps)


def now_then(plan: Plan) -> list[Markup]:
    """One line where every instance has the same value, else one each."""
    targets = plan.targets
    if not targets:
        return []
    none = "not known" if plan.deploy is not None and not _variable(plan) else None  # a version is somewhere
    if len({(t.now, t.then) for t in targets}) == 1:
        first = targets[0]
        code = "plan.now-then-all" if len(targets) > 1 else "plan.now-then"
        more = {"n": len(targets)} if len(targets) > 1 else {}
        return [say(code, now=first.now or none, then=first.then, **more)]
    shown = targets[:MOST_TARGETS]
    lines = [say("plan.now-then-one", instance=t.instance, now=t.now or none, then=t.then) for t in shown]
    left = len(targets) - MOST_TARGETS
    return [*lines, say("plan.more-instances", n=left)] if left > 0 else lines


def _brought(brought: Brought | None, targets: tuple[Target, ...], at: float) -> list[Markup]:
    """Who gave it the value that it has. A reason is theirs: what somebody states is not a cause."""
    if brought is None:
        return [say("plan.brought-none")]
    gave = brought.succeeded.now
    if any(gave.get(t.instance, t.now) != t.now for t in targets) or not any(t.instance in gave for t in targets):
        return [say("plan.brought-other", change=brought.change_id)]
    intent = brought.asked.intent
    age_s = max(0.0, at - brought.at)
    told = [say(BROUGHT[intent.kind], age_s=age_s, actor=brought.asked.actor.id, change=brought.change_id)]
    reason = getattr(intent, "because", None)
    if reason:
        told.append(say("plan.brought-because", reason=reason[:160]))
    if intent.kind == "revert":
        suspicion, cause = brought.succeeded.suspicion, brought.succeeded.cause
        told.append(cause_line(cause) if cause is not None else say("cause.not-established"))
        told += spoken_against(suspicion.blame if suspicion is not None else None)
    return told
