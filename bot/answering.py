"""Answers that only the asker sees: by the response_url of the command or click, else as an ephemeral message."""

from __future__ import annotations

import ssl
from functools import cache
from typing import Any

import httpx
import structlog
from slack_sdk import WebClient

from bot.cards.kit import Card
from bot.heard import AnyHeard, HeardAction, HeardCommand
from bot.slack import SlackRefused, SlackUnclear, call, is_loopback

log = structlog.get_logger(__name__)

TIMEOUT_S = 10.0


@cache
def certificates() -> ssl.SSLContext:
    """Whom to trust, read once: reading it takes longer than the answer (20 ms)."""
    return httpx.create_ssl_context()


class Answerer:
    """An answer that cannot be given is logged: the ledger and the thread have what matters."""

    def __init__(self, client: WebClient) -> None:
        self._client = client

    def answer(self, heard: AnyHeard, card: Card) -> bool:
        """Say it to the asker; False when it could not be said."""
        by_url = isinstance(heard, HeardCommand | HeardAction) and heard.response_url
        if by_url and self._respond(by_url, card):
            return True
        thread_ts = None if isinstance(heard, HeardCommand) else heard.thread_ts
        return self._ephemeral(heard.channel, heard.user, thread_ts, card)

    def channel(self, channel: str) -> dict[str, Any]:
        """What Slack says of a channel.

        Raises: SlackRefused, SlackUnclear.
        """
        found = call("conversations.info", self._client.conversations_info, channel=channel).get("channel")
        return found if isinstance(found, dict) else {}

    def _respond(self, url: str, card: Card) -> bool:
        body: dict[str, Any] = {"response_type": "ephemeral", "replace_original": False, "text": card.text}
        if card.blocks:
            body["blocks"] = list(card.blocks)
        try:
            # the environment's proxy settings are for other machines
            answer = httpx.post(
                url, json=body, timeout=TIMEOUT_S, trust_env=not is_loopback(url), verify=certificates()
            )
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            log.warning("response_url gave no answer", error=type(error).__name__)
            # it may have been said: saying it twice is worse than a silent answer, the thread has the rest
            return isinstance(error, httpx.ReadError | httpx.ReadTimeout | httpx.RemoteProtocolError)
        if answer.status_code != httpx.codes.OK:
            log.warning("response_url refused", status=answer.status_code)
            return False
        return True

    def _ephemeral(self, channel: str, user: str, thread_ts: str | None, card: Card) -> bool:
        try:
            call(
                "chat.postEphemeral",
                self._client.chat_postEphemeral,
                channel=channel,
                user=user,
                thread_ts=thread_ts,
                text=card.text,
                blocks=list(card.blocks) or None,
            )
        except (SlackRefused, SlackUnclear) as error:
            log.warning("answer not given", error=error.message, channel=channel)
            return False
        return True
