"""Cards and lines as a terminal shows them: names for ids, local times for date tokens, no markup, nothing that acts.

What a host or a person wrote cannot move the cursor or colour the screen: control characters do not get through.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo

from bot.cards.kit import Block, Card
from bot.escape import visible

_DATE = re.compile(r"<!date\^([0-9]{1,12})\^([^|>]*)\|([^>]*)>")
_USER = re.compile(r"<@([A-Z0-9]+)(?:\|[^>]*)?>")
_GROUP = re.compile(r"<!subteam\^([A-Z0-9]+)(?:\|[^>]*)?>")
_BOLD = re.compile(r"(?<![\w*])\*([^*\n]+)\*(?![\w*])")
_FORMS = {"time_secs": "%H:%M:%S", "date_short_pretty": "%Y-%m-%d"}


def names_of(people: Mapping[str, str]) -> Callable[[str], str]:
    """Slack user id -> user name of this machine, as the fleet file says; the id itself where it says nothing."""
    known = {slack_id: name for name, slack_id in reversed(list(people.items()))}
    return lambda user: known.get(user, user)


def plain(text: str, name_of: Callable[[str], str], zone: tzinfo | None = None) -> str:
    """The words of an mrkdwn text. `zone` None: the local one."""
    text = _DATE.sub(lambda m: _moment(m, zone), text)
    text = _USER.sub(lambda m: "@" + name_of(m[1]), text)
    text = _GROUP.sub(lambda m: "@" + m[1], text)
    text = _BOLD.sub(lambda m: m[1], text)
    return "\n".join(visible(line) for line in html.unescape(text).split("\n"))


def lines_of(card: Card, name_of: Callable[[str], str], zone: tzinfo | None = None) -> list[str]:
    """What a card says, line by line; its buttons are left out."""
    texts = [text for block in card.blocks for text in _texts(block)] or [card.text]
    return [line for text in texts for line in plain(text, name_of, zone).split("\n")]


def _texts(block: Block) -> list[str]:
    if block.get("type") == "actions":
        return []
    text = block.get("text")
    if isinstance(text, dict):
        return [str(text.get("text", ""))]
    if isinstance(text, str):
        return [text]
    return [found for element in block.get("elements", ()) for found in _texts(element)]


def _moment(match: re.Match[str], zone: tzinfo | None) -> str:
    parts = re.findall(r"\{(\w+)\}", match[2])
    if not parts or any(part not in _FORMS for part in parts):
        return match[3]
    return (
        datetime.fromtimestamp(int(match[1]), tz=zone)
        .astimezone(zone)
        .strftime(" ".join(_FORMS[part] for part in parts))
    )
