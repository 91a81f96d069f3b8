"""An emergency in words: what was done without, who answers for it until when, and what came of that."""

from __future__ import annotations

from bot.cards import buttons
from bot.cards.kit import Block
from bot.cards.plan import mentioned
from bot.cards.story import Story
from bot.markup import Markup, joined
from bot.messages import say, sentence
from policies import events as e
from policies.change import Change
from policies.emergency import ratification
from policies.events import Override


def without(found: Override) -> Markup:
    """What it was done without."""
    parts = [say("emergency.of-freeze", freeze=name) for name in found.freezes]
    if found.approvals:
        parts.append(say("emergency.of-approvals", count=found.approvals, role=found.role))
    parts += [say("emergency.of-lock", lock=name) for name in found.locks]
    if found.evidence:
        parts.append(say("emergency.of-evidence", count=len(found.evidence)))
    return joined(parts, ", ")


def used_line(story: Story, event: e.ApprovalGiven) -> Markup:
    """Somebody went without: those who can ratify are asked to."""
    found, until = event.override, ratification(story.change).until
    if found is None:
        return Markup("")
    if ratification(story.change).word == "ratified":
        return say("emergency.used-together", actor=event.actor.id, what=without(found), because=found.because[:300])
    return say(
        "emergency.used",
        who=mentioned(found.mention, story.groups) or found.ratify_by,
        actor=event.actor.id,
        order=event.order,
        what=without(found),
        because=found.because[:300],
        until=until,
        change=story.change.id,
    )


def loud(entry: e.Entry) -> bool:
    """Whether a line is told to the channel beside its thread: somebody overrides what protects all of them."""
    event = entry.event
    return isinstance(event, e.RatifyReminded | e.Lapsed) or (
        isinstance(event, e.ApprovalGiven) and event.override is not None
    )


def reminded_line(story: Story) -> Markup | None:
    """The time to ratify is soon over."""
    found = story.change.override
    if found is None:
        return None
    who, until = mentioned(found.mention, story.groups) or found.ratify_by, ratification(story.change).until
    return say("emergency.reminded", who=who, change=story.change.id, what=without(found), until=until)


def lapsed_line(story: Story) -> Markup | None:
    """Nobody ratified, and what takes it back."""
    found, lapsed, asked = story.change.override, story.change.lapsed, story.change.asked
    if found is None or lapsed is None or asked is None:
        return None
    who = mentioned((f"<@{asked.actor.id}>", *found.mention), story.groups)
    return say("emergency.lapsed", who=who, change=story.change.id, what=without(found), then=_then(story.change))


def _then(change: Change) -> Markup:
    lapsed = change.lapsed
    if lapsed is None:
        return Markup("")
    if lapsed.undo is None:
        return say("emergency.stays", why=joined([sentence(one) for one in lapsed.findings]))
    return say("emergency.undoes" if lapsed.undo == change.id else "emergency.goes-back-by", undo=lapsed.undo)


def lines(change: Change) -> list[Markup]:
    """How it stands, on the card."""
    found, override = ratification(change), change.override
    if override is None:
        return []
    match found.word:
        case "open":
            asked = change.asked
            actor = asked.actor.id if asked is not None else None
            values = {"actor": actor, "role": override.ratify_by, "until": found.until}
            return [say("emergency.open", what=without(override), **values)]
        case "ratified":
            return [say("emergency.ratified", actor=found.by.id if found.by is not None else None)]
        case "lapsed":
            return [say("emergency.not-ratified", then=_then(change))]
        case _:
            return []


def ratify_buttons(change: Change) -> list[Block]:
    """[Ratify], for as long as it waits for a second person."""
    return [buttons.ratify(change.id)] if ratification(change).word == "open" else []
