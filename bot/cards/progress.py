"""The card after the click: decided, working, held, ended. The plan stays on it; the buttons go."""

from __future__ import annotations

from typing import assert_never

from bot.cards import buttons
from bot.cards.kit import Block, Card, actions, made, section
from bot.cards.plan import headline, plan_blocks, plan_card, small_print, some
from bot.cards.story import Story, instance
from bot.cards.verdict import proof_lines
from bot.markup import Markup, joined
from bot.messages import say, sentence
from policies import events as e
from policies.change import Change, State
from policies.finding import Finding

MOST_BAR = 20
Told = e.Refused | e.NothingToDo | e.Held | e.Unknown | e.RolledBack | e.Aborted


def card(story: Story) -> Card:
    """The card of a change as it stands now."""
    state = story.change.state
    if state == "planned":
        return plan_card(story)
    return _decided(story, [line for line in [*_state_lines(story, state)] if line])


def _decided(story: Story, said: list[Markup]) -> Card:
    change = story.change
    tail: list[Block] = [small_print(story)] if change.plan else []
    if change.state == "held":
        row = buttons.on_held(
            change.id,
            say("hold.keep-title", change=change.id),
            say("hold.keep-text"),
            retry=change.failed_gate is not None,
        )
        tail.insert(0, actions(row))
    text = joined([headline(story), *said[:2]])
    return made(text, [section(headline(story)), section(*said), *plan_blocks(story)], tail)


def _state_lines(story: Story, state: State) -> list[Markup]:
    change = story.change
    match state:
        case "new" | "asked":
            return [say("card.reading")]
        case "planned":
            return []
        case "approved":
            return [decided_by(change), say("card.waiting-for-worker")]
        case "running" | "undoing":
            return [decided_by(change), progress(change)]
        case "unknown":
            return [decided_by(change), *_found(story, e.Unknown, "step.unknown"), progress(change)]
        case "held":
            return [decided_by(change), *_found(story, e.Held, "step.held"), progress(change)]
        case "refused":
            return _found(story, e.Refused, "end.refused")
        case "nothing_to_do":
            return _found(story, e.NothingToDo, "end.nothing-to-do")
        case "denied":
            denied = story.last(e.Denied)
            return [say("end.denied", actor=denied.actor.id)] if denied else []
        case "expired":
            return [say("end.expired")]
        case "succeeded":
            return [decided_by(change), succeeded(story), *proof_lines(change.proved, story.canary())]
        case "rolled_back":
            return [decided_by(change), *_found(story, e.RolledBack, "end.rolled-back")]
        case "aborted":
            return [decided_by(change), *_found(story, e.Aborted, "end.aborted")]
        case "failed":
            return [decided_by(change), *_failed(story), *proof_lines(change.proved)]
        case _:
            assert_never(state)


def _found(story: Story, kind: type[Told], code: str) -> list[Markup]:
    event = story.last(kind)
    return [say(code, why=reasons(event.findings))] if event is not None else []


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
    return say("card.confirmed", order=change.order or given[-1].order, who=who)


def succeeded(story: Story) -> Markup:
    """The end as wanted, with the time that it took."""
    end = story.last(e.Succeeded)
    if end is None:
        return Markup("")
    now, was = set(end.now.values()), set(end.was.values())
    if len(now) == 1 and len(was) == 1:
        return say("end.succeeded", took_s=end.took_s, knob=end.knob, now=now.pop(), was=was.pop())
    return say("end.succeeded-mixed", took_s=end.took_s, knob=end.knob, n=len(end.now))


def progress(change: Change) -> Markup:
    """`▰▰▱▱▱ step 2 of 5: decode@gpu1 restart and its gates`."""
    steps, done = change.steps, change.progress
    if not steps:
        return Markup("")
    passed = {index for index, _ in done.gates}
    index = done.started if done.started is not None else max(done.done, default=-1)
    waiting = done.started is None and index >= 0 and steps[index].gates and not _through(change, index)
    if done.started is None and not waiting:
        index = min(len(done.done), len(steps))
    if index >= len(steps):
        said, shown = say("step.now-finishing"), len(steps)
    else:
        step = steps[max(index, 0)]
        code = "step.now-write" if step.kind == "write" else "step.now-restart"
        said, shown = say(code, instance=instance(step)), max(index, 0) + 1
    complete = len([i for i in done.done if not steps[i].gates or i in passed])
    code = "step.progress-undo" if change.undoing else "step.progress"
    return say(code, bar=bar(complete, len(steps)), n=shown, total=len(steps), said=said)


def _through(change: Change, index: int) -> bool:
    passed = {gate for at, gate in change.progress.gates if at == index}
    return set(change.steps[index].gates) <= passed


def bar(done: int, total: int) -> str:
    """One sign a step, or a share where there are many."""
    if total > MOST_BAR:
        done, total = done * MOST_BAR // total, MOST_BAR
    return "▰" * done + "▱" * (total - done)
