"""Posting, editing and finding messages again by the metadata that every one of them carries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from slack_sdk import WebClient

from bot.cards.kit import Card
from bot.groups import UserGroups
from bot.slack import SlackRefused, SlackUnclear, call
from policies.events import Entry

EVENT_TYPE = "clawback_event"
PAGE = 200
MOST_PAGES = 25
SKEW_S = 300.0  # our clock and Slack's may differ by this much when old messages are searched


@dataclass(frozen=True, slots=True)
class Posted:
    """A message that is there. `thread_ts` None: it stands in the channel itself."""

    ts: str
    thread_ts: str | None


class Poster:
    """Raises in every method: SlackRefused, SlackUnclear."""

    def __init__(self, client: WebClient) -> None:
        self._client = client
        self._groups = UserGroups(client)

    def groups(self) -> dict[str, str]:
        """Handle -> id of the workspace's user groups, so that a mention reaches them."""
        return self._groups.handles()

    def post(self, channel: str, card: Card, entry: Entry, thread_ts: str | None, *, loud: bool = False) -> Posted:
        """A new message that carries the entry it draws. loud: a reply is shown in the channel too."""
        answer = call(
            "chat.postMessage",
            self._client.chat_postMessage,
            channel=channel,
            text=card.text,
            blocks=list(card.blocks) or None,
            thread_ts=thread_ts,
            reply_broadcast=True if loud and thread_ts is not None else None,
            metadata={"event_type": EVENT_TYPE, "event_payload": payload(entry)},
            unfurl_links=False,
            unfurl_media=False,
        )
        return Posted(str(answer["ts"]), answer.get("message", {}).get("thread_ts"))

    def update(self, channel: str, ts: str, card: Card) -> None:
        """Edit a card; its metadata stays."""
        call(
            "chat.update",
            self._client.chat_update,
            channel=channel,
            ts=ts,
            text=card.text,
            blocks=list(card.blocks),
        )

    def delete(self, channel: str, ts: str) -> None:
        """Take back a message of ours."""
        call("chat.delete", self._client.chat_delete, channel=channel, ts=ts)

    def find(
        self,
        channel: str,
        entry: Entry,
        thread_ts: str | None,
        since: float,
        *,
        besides: str | None = None,
        until: float | None = None,
    ) -> Posted | None:
        """The message that draws this entry, if it is there. `since`: epoch seconds before which it cannot be.

        besides: timestamp of one that is not meant. until: epoch seconds after which it cannot be.
        """
        wanted = payload(entry)
        for message in self._read(channel, thread_ts, since - SKEW_S, until):
            metadata = message.get("metadata") or {}
            if message.get("ts") == besides:
                continue
            if metadata.get("event_type") == EVENT_TYPE and metadata.get("event_payload") == wanted:
                return Posted(str(message["ts"]), message.get("thread_ts"))
        return None

    def drawn(self, channel: str, thread_ts: str, entries: Sequence[Entry]) -> int:
        """Ledger place of the last of these entries that stands in a thread; 0 when none does."""
        known = {entry.seq: payload(entry) for entry in entries}
        seen = [0]
        for message in self._read(channel, thread_ts, 0.0):
            metadata = message.get("metadata") or {}
            told = metadata.get("event_payload") or {}
            if metadata.get("event_type") == EVENT_TYPE and told == known.get(told.get("seq", 0)):
                seen.append(int(told["seq"]))
        return max(seen)

    def _read(
        self, channel: str, thread_ts: str | None, oldest: float, latest: float | None = None
    ) -> Iterator[dict[str, Any]]:
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            shared: dict[str, Any] = {
                "channel": channel,
                "oldest": f"{max(0.0, oldest):.6f}",
                "latest": None if latest is None else f"{latest:.6f}",
                "limit": PAGE,
                "include_all_metadata": True,
                "cursor": cursor,
            }
            if thread_ts is None:
                answer = call("conversations.history", self._client.conversations_history, **shared)
            else:
                answer = call("conversations.replies", self._client.conversations_replies, ts=thread_ts, **shared)
            yield from answer.get("messages", [])
            cursor = (answer.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                return


def permalink(client: WebClient, channel: str, ts: str) -> str | None:
    """The address of a message; None when it is gone, or Slack gives none."""
    try:
        found = call("chat.getPermalink", client.chat_getPermalink, channel=channel, message_ts=ts).get("permalink")
    except (SlackRefused, SlackUnclear):
        return None
    return found if isinstance(found, str) and found.startswith("https://") and not set(found) & set("<>|") else None


def payload(entry: Entry) -> dict[str, str | int]:
    """What a message says of the entry that it draws."""
    return {"change": entry.subject, "seq": entry.seq, "hash": entry.hash}
