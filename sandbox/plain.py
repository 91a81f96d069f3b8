"""Slack text as a terminal shows it: names for ids, the fallback of date tokens, links without their markup."""

from __future__ import annotations

import re
from collections.abc import Callable

DATE = re.compile(r"<!date\^[0-9]+\^[^|>]*\|([^>]*)>")
USER = re.compile(r"<@([A-Z0-9]+)(?:\|[^>]*)?>")
GROUP = re.compile(r"<!subteam\^([A-Z0-9]+)(?:\|[^>]*)?>")
LINK = re.compile(r"<(https?://[^|>]+)(?:\|([^>]*))?>")


def plain(text: str, name_of: Callable[[str], str]) -> str:
    """The words of an mrkdwn text; `name_of` gives a person's name for a user id."""
    text = DATE.sub(lambda m: m[1], text)
    text = USER.sub(lambda m: "@" + name_of(m[1]), text)
    text = GROUP.sub(lambda m: "@" + m[1], text)
    text = LINK.sub(lambda m: m[2] or m[1], text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def words_of(message: dict[str, object]) -> list[str]:
    """Every text that a message shows: of its blocks where it has some, else its text."""
    blocks = message.get("blocks")
    found: list[str] = []
    if isinstance(blocks, list):
        for block in blocks:
            _collect(block, found)
    return found or [str(message.get("text") or "")]


def _collect(node: object, found: list[str]) -> None:
    if isinstance(node, list):
        for item in node:
            _collect(item, found)
    elif isinstance(node, dict):
        if node.get("type") == "button":
            label = node.get("text")
            found.append(f"[{label.get('text')}]" if isinstance(label, dict) else "[?]")
            return
        if node.get("type") in {"mrkdwn", "plain_text"} and isinstance(node.get("text"), str):
            found.append(str(node["text"]))
            return
        for key in ("text", "fields", "elements"):
            if key in node:
                _collect(node[key], found)
