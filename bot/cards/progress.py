"""The card after the click: decided, working, held, ended. One card that is edited; its buttons change and go."""

from __future__ import annotations

from typing import assert_never

from bot.cards import buttons, contract, deploys, drains, emergency
from bot.cards.bar import progress
from bot.cards.evidence import one
from bot.cards.kit import Block, Card, actions, made, section
from bot.cards.locks import left_line
from bot.cards.now import now_then
from bot.cards.plan import headline, plan_card, some, undo_line, undo_to
from bot.cards.standing import mixed_now
from bot.cards.story import Story, path
from bot.cards.suspicion import gave_back, opened
from bot.cards.verdict import proof_lines
from bot.cards.waiting import waiting_lines
from bot.markup import Markup, joined
from bot.messages import say, sentence
from policies import events as e
from policies.approvals import may_retry
from policies.change import Change, State
from policies.finding import Finding

__all__ = ("card", "decided_by", "held_next", "progress", "reasons", "succeeded")

ABORTABLE = frozenset({"approved", "running", "unknown"})
Told = e.Refused | e.NothingToDo | e.Held | e.Unknown | e.RolledBack | e.Aborted


def card(story: Story) -> Card:
    """The card of a change as it stands now."""
    state = story.change.state
    if state == "planned":
        return plan_card(story)
    return _decided(story, [line for line in [*_state_lines(story, state)] if line])


def _decided(story: Story, said: list[Markup]) -> Card:
    change, plan = story.change, story.change.plan
    said = [*said, *emergency.lines(change)]
    body: list[Block] = [section(headline(story)), section(*said)] if said else [section(headline(story))]
    beside = [] if plan is None or change.ended else [*now_then(plan), *([] if change.undoing else undo_line(plan))]
    if beside:
        body.append(section(*beside))
    row = _buttons(change)
    return made(joined([headline(story), *said[:2]]), body, [actions(row)] if row else [])


def _buttons(change: Change) -> list[Block]:
    """None on a change that has ended and asks nobody for anything."""
    if change.plan is None or change.ended:
        return [*emergency.ratify_buttons(change), *contract.row(change)]
    row: list[Block] = []
    if change.state == "held":
        title, text = say("hold.keep-title", change=change.id), say("hold.keep-text")
        again = "Retry gate" if change.looks_again else "Ask again"
        retry = again if may_retry(change) else None
        row = buttons.on_held(change.id, title, text, retry=retry, undo=bool(change.plan.undo))
    elif change.state in ABORTABLE and not change.undoing and change.abort is None:
        text = say("plan.abort-text" if change.plan.undo else "plan.abort-text-restart")
        row = [buttons.abort(change.id, say("plan.abort-title", change=change.id), text)]
    return [*emergency.ratify_buttons(change), *row, buttons.details(change.id, change.plan.digest)]


def _state_lines(story: Story, state: State) -> list[Markup]:
    change = story.change
    aborting = [say("card.aborting", actor=change.abort.id)] if change.abort else []
    match state:
        case "new" | "asked":
            return [say("card.reading")]
        case "planned":
            return []
        case "approved":
            waiting = waiting_lines(change) or [say("card.waiting-for-worker")]
            return [decided_by(change), *aborting, *waiting]
        case "running" | "undoing":
            why = [*_why_undone(change), *mixed_now(change)]
            return [decided_by(change), *aborting, *why, progress(change, story.last_at)]
        case "unknown":
            return [decided_by(change), *_found(story, e.Unknown, "step.unknown"), progress(change, story.last_at)]
        case "held":
            return [
                decided_by(change),
                *_found(story, e.Held, "step.held"),
                *mixed_now(change),
                *drains.still_out(story),
                held_next(change),
                progress(change, story.last_at),
            ]
        case "refused":
            found = [*_found(story, e.Refused, "end.refused"), *_not_enough(story)]
            return [*found, *contract.lines(change), say("end.refused-next")]
        case "nothing_to_do":
            return _found(story, e.NothingToDo, "end.nothing-to-do")
        case "denied":
            denied = story.last(e.Denied)
            return [say("end.denied", actor=denied.actor.id)] if denied else []
        case "expired":
            return [say("end.expired")]
        case "succeeded":
            shown = proof_lines(change.proved, story.canary(), story.probe())
            return [decided_by(change), succeeded(story), *mixed_now(change), *shown]
        case "rolled_back":
            told = [*_found(story, e.RolledBack, "end.rolled-back"), *mixed_now(change)]
            return [decided_by(change), *told, *_why_undone(change)]
        case "aborted":
            return [decided_by(change), *_found(story, e.Aborted, "end.aborted"), *mixed_now(change)]
        case "failed":
            told = [*_failed(story), *mixed_now(change), *drains.still_out(story)]
            return [decided_by(change), *told, *proof_lines(change.proved)]
        case _:
            assert_never(state)


def held_next(change: Change) -> Markup:
    """What the buttons of a held change do."""
    if change.plan is None:
        return Markup("")
    again = "hold.may-retry" if change.looks_again else "hold.may-ask-again"
    may = [say(again)] if may_retry(change) else []
    if change.plan.undo:
        may.append(say("hold.may-undo", undo=undo_to(change.plan)))
    return say("hold.next", said=joined([*may, say("hold.may-keep")]))


def _why_undone(change: Change) -> list[Markup]:
    reason = change.undo_reason
    if not change.undoing or reason is None:
        return []
    if reason.findings:
        return [say("end.undone-for", why=reasons(reason.findings[:2]))]
    return [say("end.undone-by", actor=reason.actor.id)] if reason.actor else []


def _found(story: Story, kind: type[Told], code: str) -> list[Markup]:
    event = story.last(kind)
    return [say(code, why=reasons(event.findings))] if event is not None else []


def _not_enough(story: Story) -> list[Markup]:
    """The records that a rule found wanting, with what was judged: whoever asked wants to know what to measure."""
    event = story.last(e.Refused)
    cited = {f.values.get("record") for f in event.findings if f.code.startswith("evidence.")} if event else set()
    return [line for record in story.records if record.id in cited for line in one(record, story.last_at)]


def _failed(story: Story) -> list[Markup]:
    kept = story.last(e.KeepChosen)
    failed = story.last(e.Failed)
    if failed is not None:
        return [say("end.failed", why=reasons(failed.findings))]
    return [say("end.kept", actor=kept.actor.id)] if kept else []


def reasons(findings: tuple[Finding, ...]) -> Markup:
    """Findings as one piece of text."""
    told = some([sentence(finding) for finding in findings])
    return joined(told) if told else say("step.no-reason")


def decided_by(change: Change) -> Markup:
    """Who confirmed which order."""
    if not change.approvals:
        return Markup("")
    given = [a for a in change.approvals if a.order == (change.order or a.order)]
    who = joined([say("card.who", actor=a.actor.id) for a in given], ", ")
    order = change.order or given[-1].order
    plan = next((p for p in change.planned.plans if p.order == order), None) if change.planned else None
    told = path(plan) if plan else "?"
    if told == order:
        return say("card.confirmed-alone", order=order, who=who)
    return say("card.confirmed", order=order, path=told, who=who)


def succeeded(story: Story) -> Markup:
    """The end as wanted, with the time that it took, and what became of a suspicion with it."""
    end = story.last(e.Succeeded)
    if end is None:
        return Markup("")
    before = story.brought.succeeded if story.brought is not None else None
    left = [] if end.locked is None else [left_line(story.change.id, end.locked)]
    return joined([_done(story, end), *opened(end), *gave_back(end, before), *left])


def _done(story: Story, end: e.Succeeded) -> Markup:
    if end.service is not None:
        return deploys.ended(end)
    now, was = set(end.now.values()), set(end.was.values())
    if end.knob is None:
        plan = story.change.plan
        return say("end.restarted", took_s=end.took_s, path=path(plan) if plan else end.order)
    if len(now) == 1 and len(was) == 1:
        return say("end.succeeded", took_s=end.took_s, knob=end.knob, now=now.pop(), was=was.pop())
    return say("end.succeeded-mixed", took_s=end.took_s, knob=end.knob, n=len(end.now))
