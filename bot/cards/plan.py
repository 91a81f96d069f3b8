"""The plan card: now and then, evidence, orders, load, policy, undo; and the same card once somebody decided."""

from __future__ import annotations

from collections.abc import Iterable

from bot.cards import buttons, evidence
from bot.cards.kit import Block, Card, actions, context, made, section
from bot.cards.story import Story, path
from bot.markup import Markup, joined, mention
from bot.messages import say, sentence
from policies.events import Asked, Planned
from policies.finding import Finding
from policies.plan import Plan

MOST_TARGETS = 12
MOST_FINDINGS = 12
MOST_ORDERS = 8
MOST_MENTIONS = 20


def plan_card(story: Story) -> Card:
    """The card with its buttons, for a planned change."""
    planned = story.change.planned
    if planned is None or not planned.plans:
        return made(headline(story), [section(headline(story))])
    tail: list[Block] = [small_print(story)]
    if not planned.dry:
        row = [_confirm(story.change.id, plan) for plan in planned.plans[:MOST_ORDERS]]
        tail.insert(0, actions([*row, buttons.deny(story.change.id)]))
    please = mentions(planned)
    text = joined([headline(story), please] if please else [headline(story)])
    return made(text, [section(headline(story), please), *plan_blocks(story)], tail)


def plan_blocks(story: Story) -> list[Block]:
    """What a plan says, without headline and buttons."""
    change = story.change
    planned, plan = change.planned, change.plan
    if planned is None or plan is None:
        return []
    offered = [plan] if change.order is not None else list(planned.plans)
    warnings = [say("plan.warning", said=sentence(f)) for f in unique(p.warnings for p in planned.plans)]
    load = [say("plan.load", said=sentence(f)) for f in unique(p.load for p in planned.plans)]
    parts = [
        _targets(plan),
        evidence.lines(story.records, plan.knob, plan.value, change.planned_at),
        [order_line(p) for p in offered[:MOST_ORDERS]],
        some(load),
        some(warnings),
        [*_policy(planned, open_=change.state == "planned"), *([] if change.ended else [undo_line(plan)])],
    ]
    return [section(*part) for part in parts if part]


def headline(story: Story) -> Markup:
    """What was asked, by whom, and the change's id."""
    change = story.change
    asked, plan = change.asked, change.plan
    if asked is None:
        return say("talk.status-one", change=change.id, state=change.state)
    parts = [_title(asked, plan)]
    parts.append(say("plan.asked-by", actor=asked.actor.id, change=change.id))
    reason = getattr(asked.intent, "because", None)
    if reason:
        parts.append(say("plan.because", reason=reason[:300]))
    if asked.intent.kind == "revert":
        parts.append(say("cause.not-established"))  # a reason that somebody states is not a cause
    if asked.intent.dry:
        parts.append(say("plan.dry-run"))
    return joined(parts)


def _title(asked: Asked, plan: Plan | None) -> Markup:
    verb = asked.intent.kind.capitalize()
    value = plan.value if plan else getattr(asked.intent, "value", None)
    where = ", ".join(dict.fromkeys(t.instance.split("@")[0] for t in plan.targets)) if plan else asked.intent.scope
    if where is None and value is not None:
        return say("plan.headline-bare-value", verb=verb, knob=asked.intent.knob, value=value)
    if where is None:
        return say("plan.headline-bare", verb=verb, knob=asked.intent.knob)
    if value is None:
        return say("plan.headline-unset", verb=verb, knob=asked.intent.knob, services=where)
    return say("plan.headline-value", verb=verb, knob=asked.intent.knob, value=value, services=where)


def _targets(plan: Plan) -> list[Markup]:
    told = [
        say(
            "plan.target",
            instance=t.instance,
            now=t.now,
            now_by=t.now_decided_by,
            then=t.then,
            then_by=t.then_decided_by,
        )
        for t in plan.targets[:MOST_TARGETS]
    ]
    left = len(plan.targets) - MOST_TARGETS
    return [*told, say("plan.more-targets", n=left)] if left > 0 else told


def order_line(plan: Plan) -> Markup:
    """An order with its restarts; a duration only where restarts of this order were recorded."""
    if plan.estimate is None:
        return say("plan.order", order=plan.order, path=path(plan))
    return say(
        "plan.order-estimated",
        order=plan.order,
        path=path(plan),
        median_s=plan.estimate.median_s,
        p90_s=plan.estimate.p90_s,
        n=plan.estimate.n,
    )


def undo_line(plan: Plan) -> Markup:
    """What undoing would bring back."""
    before = {t.now for t in plan.targets}
    if len(before) == 1:
        return say("plan.undo", undo=say("plan.undo-back-to", value=before.pop()))
    return say("plan.undo", undo=say("plan.undo-mixed"))


def _policy(planned: Planned, *, open_: bool) -> list[Markup]:
    said = [say("plan.policy", said=sentence(f)) for f in planned.findings]
    if planned.approvals == 0:
        said.append(say("plan.no-approval"))
    if open_ and not planned.dry:
        said.append(say("plan.until", until=planned.expires_at))
    return some(said)


def mentions(planned: Planned) -> Markup:
    """Those who can decide, by name; nothing for a dry run."""
    if planned.dry or not planned.mention:
        return Markup("")
    return say("plan.please", who=joined([mention(who) for who in planned.mention[:MOST_MENTIONS]], " "))


def small_print(story: Story) -> Block:
    """The digest of what would be approved."""
    plan = story.change.plan
    return context(say("plan.digest", digest=plan.digest) if plan else "-")


def _confirm(change_id: str, plan: Plan) -> Block:
    before = {t.now for t in plan.targets}
    if len(before) == 1:
        text = say("plan.confirm-text", path=path(plan), knob=plan.knob, now=before.pop(), then=plan.value)
    else:
        text = say("plan.confirm-text-mixed", path=path(plan), knob=plan.knob, then=plan.value)
    return buttons.confirm(change_id, plan, say("plan.confirm-title", change=change_id), text[:290])


def unique(groups: Iterable[tuple[Finding, ...]]) -> list[Finding]:
    """Findings of several plans, each once, in order."""
    seen: list[Finding] = []
    for group in groups:
        seen += [finding for finding in group if finding not in seen]
    return seen


def some(lines: list[Markup]) -> list[Markup]:
    """At most so many lines, and how many more there are."""
    left = len(lines) - MOST_FINDINGS
    return [*lines[:MOST_FINDINGS], say("plan.more-lines", n=left)] if left > 0 else lines
