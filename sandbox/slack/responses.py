"""Things with a life time: socket tickets, trigger ids and response_urls."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass

from sandbox.slack.errors import SlackError
from sandbox.slack.oracle import Oracle
from sandbox.slack.records import Call, Json, Message
from sandbox.slack.workspace import Workspace

TRIGGER_LIFE_S = 3.0
"""Source: trigger ids live 3 s and work once."""
RESPONSE_LIFE_S = 1800.0
RESPONSE_USES = 5
"""Source: a response_url takes five posts within 30 minutes."""


@dataclass(slots=True)
class Trigger:
    """A trigger id: who caused it, until when it lives."""

    user: str
    born: float
    used: bool = False


@dataclass(slots=True)
class ResponseTarget:
    """What a response_url answers: a command (no message), or the message whose component was clicked."""

    channel: str
    user: str
    born: float
    message: Message | None = None
    uses: int = 0


class Tickets:
    """Everything single-use or short-lived that the platform hands out."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._sockets: set[str] = set()
        self._triggers: dict[str, Trigger] = {}
        self._responses: dict[str, ResponseTarget] = {}
        self.origin = ""
        """`http://127.0.0.1:PORT`, set when the server listens."""

    def new_socket_url(self) -> str:
        """A ws:// address that admits one connection."""
        ticket = secrets.token_hex(12)
        with self._workspace.lock:
            self._sockets.add(ticket)
        where = self.origin.replace("http://", "ws://", 1)
        return f"{where}/link/?ticket={ticket}&app_id={self._workspace.app.app_id}"

    def admit(self, ticket: str) -> bool:
        """True once for each ticket."""
        with self._workspace.lock:
            if ticket not in self._sockets:
                return False
            self._sockets.discard(ticket)
            return True

    def new_trigger(self, user: str) -> str:
        """A trigger id `n.n.hex`."""
        number = secrets.randbelow(10**12) + 10**12
        trigger = f"{number}.{secrets.randbelow(10**11) + 10**11}.{secrets.token_hex(16)}"
        with self._workspace.lock:
            self._triggers[trigger] = Trigger(user, time.monotonic())
        return trigger

    def use_trigger(self, trigger_id: str) -> str:
        """Spend a trigger; returns who caused it."""
        with self._workspace.lock:
            trigger = self._triggers.get(trigger_id)
            if trigger is None:
                raise SlackError("invalid_trigger_id")
            if trigger.used:
                raise SlackError("exchanged_trigger_id")
            if time.monotonic() - trigger.born > TRIGGER_LIFE_S:
                raise SlackError("expired_trigger_id")
            trigger.used = True
            return trigger.user

    def new_response_url(self, kind: str, channel: str, user: str, message: Message | None = None) -> str:
        """A response_url; `kind` is `commands` or `actions`."""
        token = secrets.token_hex(12)
        with self._workspace.lock:
            self._responses[token] = ResponseTarget(channel, user, time.monotonic(), message)
        return f"{self.origin}/{kind}/{self._workspace.team_id}/{secrets.randbelow(10**12)}/{token}"

    def use_response(self, token: str) -> ResponseTarget:
        """Spend one use of a response_url."""
        with self._workspace.lock:
            target = self._responses.get(token)
            if target is None:
                raise SlackError("no_such_url")
            if time.monotonic() - target.born > RESPONSE_LIFE_S:
                raise SlackError("expired_url")
            if target.uses >= RESPONSE_USES:
                raise SlackError("used_url")
            target.uses += 1
            return target

    def age(self, *, seconds: float) -> None:
        """Make every trigger and response_url older, so that expiry can be tried without waiting."""
        with self._workspace.lock:
            for trigger in self._triggers.values():
                trigger.born -= seconds
            for target in self._responses.values():
                target.born -= seconds


def respond(workspace: Workspace, oracle: Oracle, target: ResponseTarget, body: Json, call: Call) -> None:
    """Apply a post to a response_url, or the body of a command's acknowledgement.

    Raises: SlackError with the platform's error name.
    """
    original = target.message
    wants_original = body.get("replace_original") is True or body.get("delete_original") is True
    if wants_original and original is None:
        oracle.note(call.method, "no_original", "a command's own response cannot be replaced or deleted")
        raise SlackError("invalid_arguments")
    if body.get("delete_original") is True and original is not None:
        workspace.remove(original)
        return
    oracle.judge_body(call.method, body)
    blocks = body.get("blocks") or []
    if wants_original and original is not None:
        fields: Json = {"text": str(body.get("text") or ""), "blocks": blocks}
        if body.get("metadata") is not None:
            fields["metadata"] = body["metadata"] or None
        workspace.edit(original, by=workspace.app.bot_user, **fields)
        return
    kind = body.get("response_type") or "ephemeral"
    if kind not in {"ephemeral", "in_channel"}:
        oracle.note(call.method, "response_type", f"{kind!r} is neither ephemeral nor in_channel")
        raise SlackError("invalid_arguments")
    thread_ts = body.get("thread_ts")
    workspace.post(
        target.channel,
        workspace.app.bot_user,
        str(body.get("text") or ""),
        bot_id=workspace.app.bot_id,
        blocks=blocks,
        attachments=body.get("attachments") or [],
        metadata=body.get("metadata") or None,
        thread_ts=thread_ts if isinstance(thread_ts, str) else None,
        ephemeral_to=target.user if kind == "ephemeral" else None,
    )
