"""Reading whole threads and channels back from Slack, however long they are."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from slack_sdk import WebClient

from bot.audit.message import Me, Message, read
from bot.slack import SlackRefused, SlackUnclear, call

PAGE = 200  # Source: Slack's advice for cursors; more is allowed and answered more slowly
PATIENCE = 10  # times that one page is asked for before it counts as unreadable
LONGEST_PAUSE_S = 60.0


class Slack:
    """Reads only. Waits when Slack asks for it. Raises everywhere: SlackRefused, SlackUnclear."""

    def __init__(self, client: WebClient, pause: Callable[[float], object] = time.sleep) -> None:
        self._client = client
        self._pause = pause

    def me(self) -> Me:
        """Who the token is."""
        said = self._patient("auth.test", self._client.auth_test)
        return Me(str(said.get("user_id") or ""), str(said.get("bot_id") or ""), str(said.get("user") or ""))

    def groups(self) -> dict[str, str]:
        """Handle -> id of the user groups; empty where they cannot be read: lines then name them plainly."""
        try:
            found = self._patient("usergroups.list", self._client.usergroups_list).get("usergroups", [])
        except (SlackRefused, SlackUnclear):
            return {}
        return {str(group["handle"]): str(group["id"]) for group in found}

    def thread(self, channel: str, ts: str) -> list[Message]:
        """A thread with its parent, oldest first."""
        return self._all("conversations.replies", self._client.conversations_replies, channel=channel, ts=ts)

    def channel(self, channel: str, since: float) -> list[Message]:
        """What stands in the channel itself since then (epoch seconds), oldest first."""
        oldest = f"{max(0.0, since):.6f}"
        method = "conversations.history"
        found = self._all(method, self._client.conversations_history, channel=channel, oldest=oldest)
        return [message for message in found if not message.is_reply]

    def _all(self, method: str, function: Callable[..., Any], **where: str) -> list[Message]:
        found: dict[str, Message] = {}
        cursor: str | None = None
        while True:
            page = self._patient(
                method, function, **where, limit=PAGE, include_all_metadata=True, cursor=cursor
            )  # fmt: skip
            found |= {message.ts: message for message in map(read, page.get("messages", []))}
            cursor = (page.get("response_metadata") or {}).get("next_cursor")
            if not cursor:
                return sorted(found.values(), key=lambda message: message.at)

    def _patient(self, method: str, function: Callable[..., Any], **arguments: Any) -> dict[str, Any]:
        tries = 0
        while True:
            tries += 1
            try:
                return call(method, function, **arguments)
            except (SlackRefused, SlackUnclear) as error:
                asked = error.retry_after_s if isinstance(error, SlackRefused) else min(2.0**tries, 8.0)
                if asked is None or tries >= (PATIENCE if isinstance(error, SlackRefused) else 3):
                    raise
                self._pause(min(asked, LONGEST_PAUSE_S))
