"""How an envelope reaches the app: over a socket, or as a signed request. People only know this much of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sandbox.slack.records import Envelope, Json

ACK_LIMIT_S = 3.0
"""Source: commands, clicks and events must be acknowledged within 3 s."""

OnSettled = Callable[[Envelope], None]


class Delivery(Protocol):
    """Where people's doings go."""

    @property
    def running(self) -> bool:
        """Whether envelopes can be delivered at all."""

    def deliver(self, kind: str, payload: Json, *, on_settled: OnSettled | None = None) -> Envelope:
        """Send an envelope of kind `events_api`, `slash_commands` or `interactive`; returns at once."""


def takes_payload(envelope: Envelope) -> bool:
    """Whether the acknowledgement may carry an answer: a command's message, or what a modal does next."""
    return envelope.kind == "slash_commands" or envelope.payload.get("type") == "view_submission"
