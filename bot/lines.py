"""Lines of a thread that many kinds of events have in common: by whom, why, and to whom."""

from __future__ import annotations

from collections.abc import Callable

from bot.cards.plan import some
from bot.cards.story import Story
from bot.markup import Markup, joined, mention
from bot.messages import say, sentence
from policies.change import Change

Line = Callable[[Story], Markup | None]


def by(code: str) -> Line:
    """A line that only says who did it."""

    def told(story: Story) -> Markup | None:
        actor = getattr(story.entry.event, "actor", None)
        return say(code, actor=actor.id) if actor is not None else None

    return told


def why(code: str) -> Line:
    """A line that gives the findings of its event."""

    def told(story: Story) -> Markup | None:
        findings = getattr(story.entry.event, "findings", ())
        return say(code, why=joined(some([sentence(f) for f in findings])) if findings else say("step.no-reason"))

    return told


def to(told: Line) -> Line:
    """A line that those who asked and confirmed must see: it mentions them."""

    def said(story: Story) -> Markup | None:
        found = told(story)
        who = parties(story.change)
        return say("card.to", who=who, said=found) if found is not None and who else found

    return said


def parties(change: Change) -> Markup:
    """The requester, then those who confirmed or denied; everybody once."""
    found = [change.asked.actor] if change.asked is not None else []
    found += [given.actor for given in change.approvals]
    ids = dict.fromkeys(actor.id for actor in found)
    return joined([mention(user) for user in ids], " ")


def nothing(_: Story) -> None:
    """No line: the card shows it, or messages of its own do."""
    return
