"""Where a change is told in Slack: the address of its card, asked for once."""

from __future__ import annotations

import structlog
from slack_sdk import WebClient

from bot.slack import SlackRefused, SlackUnclear, call
from workers.drawn import Drawn

log = structlog.get_logger(__name__)
MOST_KEPT = 1000


class Permalinks:
    """An answer without an address is still an answer: what Slack does not give is logged and left out."""

    def __init__(self, client: WebClient, drawn: Drawn) -> None:
        self._client = client
        self._drawn = drawn
        self._known: dict[tuple[str, str], str] = {}

    def of(self, change_id: str) -> str | None:
        """The address of the change's card; None where it was not drawn or Slack does not say.

        Raises: StoreUnavailable.
        """
        pointer = self._drawn.get(change_id)
        if pointer is None or pointer.card_ts is None:
            return None
        place = (pointer.channel, pointer.card_ts)
        if place not in self._known:
            try:
                answer = call(
                    "chat.getPermalink",
                    self._client.chat_getPermalink,
                    channel=pointer.channel,
                    message_ts=pointer.card_ts,
                )
            except (SlackRefused, SlackUnclear) as error:
                log.info("no address of a card", change=change_id, error=error.message)
                return None
            if len(self._known) > MOST_KEPT:
                self._known.clear()
            self._known[place] = str(answer.get("permalink") or "")
        return self._known[place] or None
