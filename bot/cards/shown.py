"""The card as it is sent, and whether two cards look the same once Slack has added what it adds."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from bot.cards.kit import Card, context
from bot.cards.progress import card as card_of
from bot.cards.story import Story
from bot.messages import say

# Source: messages read back with conversations.replies: ids of blocks, and the defaults of text objects
ADDED = frozenset({"block_id", "emoji", "verbatim"})
_LINK = re.compile(r"<((?:https?://|mailto:)[^|<>\s]+)(?:\|([^<>]*))?>")


def shown(story: Story, *, lost: bool) -> Card:
    """The card of a change; one that stands in for a card or thread that is gone says so."""
    card = card_of(story)
    if not lost:
        return card
    note = context(say("talk.thread-lost", change=story.change.id))
    return Card(card.text, (note, *card.blocks[:49]))


def digest(card: Card) -> str:
    """The same for a card as it was sent and as Slack gives it back."""
    body = json.dumps([as_sent(card.text), plain_blocks(list(card.blocks))], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(body.encode()).hexdigest()


def as_sent(text: str) -> str:
    """Text of a message without the links that Slack makes of bare addresses; a link with other words stays one."""
    return _LINK.sub(_address, text)


def _address(link: re.Match[str]) -> str:
    address, label = link[1], link[2]
    if label is None or label == address:
        return address
    return label if address.split(":", 1)[1].removeprefix("//") == label else link[0]


def plain_blocks(value: Any) -> Any:
    """Blocks without what Slack adds to them."""
    if isinstance(value, dict):
        return {key: plain_blocks(part) for key, part in value.items() if key not in ADDED}
    if isinstance(value, list | tuple):
        return [plain_blocks(part) for part in value]
    return as_sent(value) if isinstance(value, str) else value
