"""What is told of replicas while a change goes through them: waves, the replica that goes first, the way back."""

from __future__ import annotations

from bot.cards.plan import some
from bot.cards.story import Story, instance
from bot.cards.waves import stages_path
from bot.markup import Markup, joined
from bot.messages import say, sentence
from policies import events as e
from policies.canaries import read_as
from policies.change import Change
from policies.planning.waves import stages_of
from policies.stages import at_work


def wave(story: Story) -> Markup | None:
    """The first step of a wave begins, where there is more than one."""
    event, change = story.entry.event, story.change
    if not isinstance(event, e.StepStarted) or change.undoing is not (event.part == "undo"):
        return None
    steps = [(i, step) for i, step in at_work(change) if step.wave == change.steps[event.index].wave]
    if not steps or steps[0][0] != event.index:
        return None
    told = present_wave(change, event.index)
    return joined(told) if told else None


def present_wave(change: Change, index: int | None) -> list[Markup]:
    """`wave 2 of 3: prefill@gpu2 → decode@gpu2`; nothing where a plan has one wave."""
    total = max((step.wave for step in change.steps), default=1)
    if index is None or total == 1:
        return []
    number = change.steps[index].wave
    mine = [step for _, step in at_work(change) if step.wave == number]
    path = stages_path(stages_of(mine)) or ", ".join(dict.fromkeys(map(instance, mine)))
    if change.undoing:
        return [say("step.wave-undo", n=number, path=path)]
    return [say("step.wave", n=number, total=total, path=path)]


def brought_back(change: Change) -> list[Markup]:
    """Which instances an undo goes back over, in order; nothing for a plan without replicas."""
    if change.plan is None or not change.plan.rolling or not change.undoing:
        return []
    names = dict.fromkeys(instance(step) for _, step in at_work(change))
    return [say("step.brought-back", instances=", ".join(names))] if names else []


def started(story: Story) -> Markup | None:
    """The watch began."""
    event = story.entry.event
    if not isinstance(event, e.CanaryStarted):
        return None
    instances = ", ".join(event.readings)
    if event.until <= story.entry.at:
        return say("canary.started-plain", instances=instances)
    return say("canary.started", instances=instances, until=event.until)


def passed(story: Story) -> Markup | None:
    """It passed, with every condition and what was read."""
    event = story.entry.event
    if not isinstance(event, e.CanaryPassed):
        return None
    said = [_held(one) for one in event.required] + [sentence(finding) for finding in event.findings]
    return say("canary.passed", instances=", ".join(event.instances), said=joined(some(said)))


def failed(story: Story) -> Markup | None:
    """It did not pass: what was read, what was expected, and what held beside that."""
    event = story.entry.event
    if not isinstance(event, e.CanaryFailed):
        return None
    said = [sentence(finding) for finding in event.verdict.findings]
    said += [_held(one) for one in event.required if one.word == "holds"]
    answer = event.verdict.answer
    return say("canary.failed", instances=", ".join(event.instances), answer=answer, said=joined(some(said)))


def _held(one: e.Required) -> Markup:
    return say("canary.held", condition=one.condition, read=read_as(one.citations), n=one.n)
