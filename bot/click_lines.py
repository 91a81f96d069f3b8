"""Lines of a thread about what people click: confirmations, and words that were refused."""

from __future__ import annotations

from bot.cards import emergency
from bot.cards.story import Story
from bot.markup import Markup
from bot.messages import say, sentence
from policies import events as e

SHORT = {
    "click.expired": "refused.expired",
    "click.old-plan": "refused.old-plan",
    "click.self-approval": "refused.self-approval",
    "click.not-approver": "refused.not-approver",
    "click.already-given": "refused.already-given",
    "click.not-party": "refused.not-party",
    "click.wrong-state": "refused.wrong-state",
}


def approval(story: Story) -> Markup | None:
    """Who confirmed which order; in an emergency, what that overrides."""
    event = story.entry.event
    if not isinstance(event, e.ApprovalGiven):
        return None
    if event.override is not None:
        return emergency.used_line(story, event)
    return say("step.approved" if event.complete else "step.approval", order=event.order, actor=event.actor.id)


def click_refused(story: Story) -> Markup | None:
    """A word that was not allowed."""
    event = story.entry.event
    if not isinstance(event, e.ClickRefused):
        return None
    short = SHORT.get(event.finding.code)
    # the person was told in full; the thread says it about them, in a few words
    said = sentence(event.finding.model_copy(update={"code": short}) if short else event.finding)
    return say("step.click-refused", what=event.what, actor=event.actor.id, said=said)
