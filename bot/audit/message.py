"""A message as Slack gives it back, and whose it is."""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bot.posting import EVENT_TYPE

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a message's metadata say that it draws. `hash` is the entry's."""

    change: str
    seq: int
    hash: str


@dataclass(frozen=True, slots=True)
class Me:
    """The bot as Slack knows it."""

    user: str
    bot: str
    name: str

    def wrote(self, message: Message) -> bool:
        """It was posted with the bot's token."""
        if message.bot:
            return message.bot == self.bot
        return message.user == self.user

    def looks_like(self, message: Message) -> bool:
        """Another app posted it under the bot's name."""
        return bool(message.bot) and not self.wrote(message) and message.name.casefold() == self.name.casefold()


@dataclass(frozen=True, slots=True)
class Message:
    """One message. `edited_by`: user id, None when it was never edited. `name`: under which an app posted it."""

    ts: str
    thread_ts: str | None
    user: str
    bot: str
    name: str
    text: str
    blocks: tuple[Json, ...]
    edited_by: str | None
    claim: Claim | None
    has_files: bool
    has_attachments: bool

    @property
    def at(self) -> float:
        """Epoch seconds of its timestamp."""
        return float(self.ts)

    @property
    def is_reply(self) -> bool:
        """It stands in a thread below another message."""
        return self.thread_ts is not None and self.thread_ts != self.ts

    def shows_more_than(self, text: str) -> bool:
        """Blocks or attachments show other words than `text`, which Slack itself only lays out anew."""
        if self.has_attachments or any(block.get("type") != "rich_text" for block in self.blocks):
            return True
        said = html.unescape(text)
        return any(leaf.strip() not in said for block in self.blocks for leaf in _leaves(block))


def read(raw: Json) -> Message:
    """The message of one object of conversations.replies or conversations.history."""
    edited = raw.get("edited")
    profile = raw.get("bot_profile") or {}
    return Message(
        ts=str(raw.get("ts", "0")),
        thread_ts=raw.get("thread_ts"),
        user=str(raw.get("user") or ""),
        bot=str(raw.get("bot_id") or ""),
        name=str(raw.get("username") or profile.get("name") or ""),
        text=str(raw.get("text") or ""),
        blocks=tuple(block for block in raw.get("blocks") or () if isinstance(block, dict)),
        edited_by=str(edited.get("user") or "somebody") if isinstance(edited, dict) else None,
        claim=_claim(raw.get("metadata")),
        has_files=bool(raw.get("files")),
        has_attachments=bool(raw.get("attachments")),
    )


def _claim(metadata: Any) -> Claim | None:
    if not isinstance(metadata, dict) or metadata.get("event_type") != EVENT_TYPE:
        return None
    told = metadata.get("event_payload")
    told = told if isinstance(told, dict) else {}
    seq = told.get("seq")
    number = int(seq) if isinstance(seq, int | float) and not isinstance(seq, bool) else 0
    return Claim(str(told.get("change") or "?"), number, str(told.get("hash") or ""))


def _leaves(block: Json) -> Iterator[str]:
    """The plain words of a rich text block."""
    if block.get("type") == "text":
        yield str(block.get("text") or "")
    for part in block.get("elements") or ():
        if isinstance(part, dict):
            yield from _leaves(part)
