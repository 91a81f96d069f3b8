"""User groups of the workspace: which id a handle has. Asked of Slack at most once a minute."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from slack_sdk import WebClient

from bot.markup import is_group_id
from bot.slack import call

CACHE_S = 60.0  # Source: FACTS-slack 4, user groups are Tier 2 and must not be older at a decision than this


class UserGroups:
    """One per process; threads may share it. `clock` is a steady clock in seconds."""

    def __init__(self, client: WebClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: tuple[float, dict[str, str]] | None = None

    def id_of(self, group: str) -> str | None:
        """The id of a group that is named by id or by handle; None when the workspace has no such handle.

        Raises: SlackRefused, SlackUnclear.
        """
        return group if is_group_id(group) else self.handles().get(group.removeprefix("@"))

    def handles(self) -> dict[str, str]:
        """Handle -> id of every group.

        Raises: SlackRefused, SlackUnclear.
        """
        with self._lock:
            kept = self._kept
        if kept is None or self._clock() - kept[0] > CACHE_S:
            answer = call("usergroups.list", self._client.usergroups_list)
            handles = {str(g["handle"]): str(g["id"]) for g in answer.get("usergroups", [])}
            with self._lock:
                kept = self._kept = (self._clock(), handles)
        return kept[1]

    def forget(self) -> None:
        """Drop what is kept; Slack said that a group changed."""
        with self._lock:
            self._kept = None
