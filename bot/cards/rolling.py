"""What is told of the replica that goes first."""

from __future__ import annotations

from bot.cards.plan import some
from bot.cards.story import Story
from bot.markup import Markup, joined
from bot.messages import say, sentence
from policies import events as e
from policies.canaries import read_as


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
