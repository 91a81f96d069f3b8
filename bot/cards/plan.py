"""The plan card, for a person with ten seconds: the important first, a line each; the rest is under Details."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bot.cards import buttons, evidence
from bot.cards.blame import blame_lines, established
from bot.cards.kit import Block, Card, actions, made, section
from bot.cards.load import left_running, load_lines
from bot.cards.now import now_lines
from bot.cards.story import Story, knob_of, path
from bot.cards.waves import SAID_ABOVE, drain_lines, drained, mixed_lines, wave_lines
from bot.escape import mrkdwn
from bot.markup import Markup, is_group_id, joined, mention
from bot.messages import say, sentence
from policies.events import Asked, Planned
from policies.finding import Finding
from policies.intents import Deploy, RevertKnob, Rollback, subject
from policies.plan import Plan

MOST_FINDINGS = 12
MOST_WARNINGS = 4
MOST_ORDERS = 8
MOST_MENTIONS = 20
SUBTEAM = "<!subteam^"
NEWS = frozenset({"refuse", "warn", "note"})  # what policy says beside that it is allowed


def plan_card(story: Story) -> Card:
    """The card with its buttons, for a planned change."""
    change = story.change
    planned, plan = change.planned, change.plan
    if planned is None or plan is None:
        return made(headline(story), [section(headline(story))])
    row: list[Block] = []
    if not planned.dry:
        row = [_confirm(change.id, offered) for offered in planned.plans[:MOST_ORDERS]]
        row.append(buttons.deny(change.id))
    tail = [actions([*row, buttons.details(change.id, plan.digest)])]
    needs = _needs(story, planned)
    body = [section(headline(story)), *plan_blocks(story), section(joined([needs, *undo_line(plan)]))]
    return made(joined([headline(story), needs]), body, tail)


def plan_blocks(story: Story) -> list[Block]:
    """What a plan says, without headline, policy and buttons."""
    change = story.change
    planned, plan = change.planned, change.plan
    if planned is None or plan is None:
        return []
    blamed = blame_lines(planned.blame, plan.knob or "") if planned.blame is not None else []
    parts = [
        [
            *now_lines(story, plan),
            *mixed_lines(planned.plans),
            *_worth(story, plan),
            *(sentence(finding) for finding in plan.contents),
        ],
        blamed,
        [
            *(line for p in planned.plans[:MOST_ORDERS] for line in (order_line(p), *wave_lines(p))),
            *drain_lines(planned.plans),
            *load_lines(unique(p.load for p in planned.plans), drained(planned.plans)),
        ],
        _warnings(planned),
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
    if asked.intent.ticket is not None:
        parts.append(say("plan.ticket", ticket=asked.intent.ticket))
    if isinstance(asked.intent, RevertKnob):
        blame = change.planned.blame if change.planned is not None else None
        if asked.intent.citing:
            code = "plan.citing" if blame is not None else "plan.citing-unread"
            parts.append(say(code, cited=", ".join(asked.intent.citing)[:300]))
        parts.append(established(blame))  # a reason that somebody states is not a cause
    if asked.intent.emergency:
        parts.insert(0, say("emergency.flag"))
    if asked.intent.dry:
        parts.append(say("plan.dry-run"))
    return joined(parts)


def _title(asked: Asked, plan: Plan | None) -> Markup:
    intent = asked.intent
    if isinstance(intent, Deploy):
        return say("plan.headline-deploy", verb="Deploy", service=intent.service, ref=intent.ref)
    if isinstance(intent, Rollback):
        if plan is None or plan.deploy is None:
            return say("plan.headline-rollback-bare", verb="Roll", service=intent.service)
        return say("plan.headline-rollback", verb="Roll", service=intent.service, ref=plan.deploy.ref)
    verb, knob, scope = intent.kind.capitalize(), knob_of(intent), intent.scope
    if knob is None:
        return say("plan.headline-bare", verb=verb, what=subject(intent))
    value = plan.value if plan else getattr(intent, "value", None)
    where = ", ".join(dict.fromkeys(t.instance.split("@")[0] for t in plan.targets)) if plan else scope
    if where is None and value is not None:
        return say("plan.headline-bare-value", verb=verb, knob=knob, value=value)
    if where is None:
        return say("plan.headline-bare", verb=verb, what=knob)
    if value is None:
        return say("plan.headline-unset", verb=verb, knob=knob, services=where)
    return say("plan.headline-value", verb=verb, knob=knob, value=value, services=where)


def _worth(story: Story, plan: Plan) -> list[Markup]:
    """Evidence for the value that would be taken away, then for the one that would be given."""
    knob, at = plan.knob, story.change.planned_at
    if knob is None:
        return []
    values = dict.fromkeys(t.now for t in plan.targets if t.now is not None and t.now != plan.value)
    fitting = [v for v in values if any(r.knob == knob and r.value == v for r in story.records)]
    stand = story.change.planned.standings if story.change.planned is not None else ()
    lines = [line for value in fitting[:2] for line in evidence.short(story.records, knob, value, at, stand)[:1]]
    given_up = [say("plan.gives-up", said=line) for line in lines]
    return [*given_up, *evidence.short(story.records, knob, plan.value, at, stand)]


def order_line(plan: Plan) -> Markup:
    """An order with its restarts; a duration only where restarts of all its instances were recorded."""
    told = path(plan)
    parts = [say("plan.order", order=plan.order, path=told) if told != plan.order else say("plan.restarts", path=told)]
    if (waves := plan.steps[-1].wave) > 1:
        parts.append(say("plan.waves", n=waves))
    if (took := plan.estimate) is not None:
        parts.append(say("plan.order-takes", median_s=took.median_s, p90_s=took.p90_s, n=took.n))
    return joined([*parts, *left_running(plan.load)])


def undo_line(plan: Plan) -> list[Markup]:
    """What undoing would bring back, or that there is nothing to bring back."""
    if plan.deploy is not None and not plan.undo:
        return [say("plan.undo-no-way")]
    if plan.knob is None and plan.deploy is None:
        return [say("plan.undo-none")]
    code = "plan.undo-waves" if plan.undo and plan.undo[0].wave > 1 else "plan.undo"
    return [say(code, undo=undo_to(plan))] if plan.targets else []


def undo_to(plan: Plan) -> Markup:
    """The value, or the version, that undoing goes back to."""
    before = {t.now for t in plan.targets}
    return say("plan.undo-back-to", value=before.pop()) if len(before) == 1 else say("plan.undo-mixed")


def _needs(story: Story, planned: Planned) -> Markup:
    """Who must agree, until when, and what else policy has to say."""
    asked = story.change.asked
    if planned.approvals and asked is not None:
        said = [say("plan.needs", count=planned.approvals, role=planned.by, actor=asked.actor.id)]
    else:
        said = [say("plan.no-approval")]
    news = sorted((f for f in planned.findings if f.effect in NEWS), key=lambda f: not f.code.startswith("emergency."))
    said += [sentence(f) for f in news][:MOST_WARNINGS]
    if not planned.dry:
        said.append(say("plan.until", until=planned.expires_at))
    return say("plan.policy", said=joined(said))


def _warnings(planned: Planned) -> list[Markup]:
    found = [f for f in unique(p.warnings for p in planned.plans) if f.code not in SAID_ABOVE]
    told = [say("plan.warning", said=sentence(f)) for f in found[:MOST_WARNINGS]]
    left = len(found) - MOST_WARNINGS
    return [*told, say("plan.more-details", n=left)] if left > 0 else told


def mentions(planned: Planned, groups: Mapping[str, str]) -> Markup:
    """Those who can decide; nothing for a dry run. A group whose id is not known pings nobody and is named."""
    if planned.dry or not planned.approvals:
        return Markup("")
    return mentioned(planned.mention, groups)


def mentioned(whom: tuple[str, ...], groups: Mapping[str, str]) -> Markup:
    """People and groups, as Slack calls them, each mentioned."""
    return joined([_mention(who, groups) for who in dict.fromkeys(whom[:MOST_MENTIONS])], " ")


def handles(whom: tuple[str, ...]) -> list[str]:
    """Groups among these that are named by handle."""
    named = [who.removeprefix(SUBTEAM).removesuffix(">") for who in whom if who.startswith(SUBTEAM)]
    return [name for name in named if not is_group_id(name)]


def _mention(who: str, groups: Mapping[str, str]) -> Markup:
    name = who.removeprefix(SUBTEAM).removesuffix(">")
    if not who.startswith(SUBTEAM) or is_group_id(name):
        return mention(who)
    found = groups.get(name.removeprefix("@"))
    return mention(found) if found is not None else Markup(mrkdwn(f"@{name.removeprefix('@')}"))


def _confirm(change_id: str, plan: Plan) -> Block:
    before = {t.now for t in plan.targets}
    if plan.deploy is not None:
        text = _deploys(plan, before)
    elif plan.knob is None:
        text = say("plan.confirm-text-restart", path=path(plan))
    elif len(before) == 1:
        text = say("plan.confirm-text", path=path(plan), knob=plan.knob, now=before.pop(), then=plan.value)
    else:
        text = say("plan.confirm-text-mixed", path=path(plan), knob=plan.knob, then=plan.value)
    changes = plan.knob is not None or plan.deploy is not None
    label = plan.order if changes or path(plan) != plan.order else f"restart of {plan.order}"
    return buttons.confirm(change_id, plan, label, say("plan.confirm-title", change=change_id), text[:290])


def _deploys(plan: Plan, before: set[str | None]) -> Markup:
    service, ref = (plan.deploy.service, plan.deploy.ref) if plan.deploy is not None else ("", "")
    if len(before) == 1:
        now = before.pop() or "an unknown version"
        return say("plan.confirm-text-deploy", path=path(plan), service=service, now=now, then=ref)
    return say("plan.confirm-text-deploy-mixed", path=path(plan), service=service, then=ref)


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
