"""HTTP mode: commands, clicks and events as signed requests to the app, with the same 3 s and the same envelopes."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import httpx

from sandbox.slack.delivery import ACK_LIMIT_S, OnSettled, takes_payload
from sandbox.slack.errors import PersonError
from sandbox.slack.faults import FaultMenu
from sandbox.slack.payloads import VERIFICATION
from sandbox.slack.records import Envelope, Json, Violation
from sandbox.slack.workspace import Workspace

OLD_S = 301
"""Source: a request older than 300 s is to be refused."""
AGENT = "Slackbot 1.0 (+sandbox)"


@dataclass(frozen=True, slots=True)
class Signed:
    """One request as it goes over the wire."""

    body: bytes
    headers: dict[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; `status` is 0 when nothing did, `lost` says why."""

    status: int
    text: str = ""
    no_retry: bool = False
    lost: str = ""


def encoded(kind: str, payload: Json) -> tuple[bytes, str]:
    """Body and content type of an envelope: a command's fields, a click's `payload`, or an event's JSON."""
    if kind == "slash_commands":
        return urlencode(payload).encode(), "application/x-www-form-urlencoded"
    if kind == "interactive":
        return urlencode({"payload": json.dumps(payload)}).encode(), "application/x-www-form-urlencoded"
    return json.dumps(payload).encode(), "application/json"


def signed(body: bytes, content_type: str, secret: str, *, at: float | None = None) -> Signed:
    """A request signed with `secret` at `at` (epoch seconds, now by default)."""
    stamp = str(int(time.time() if at is None else at))
    digest = hmac.new(secret.encode(), b"v0:" + stamp.encode() + b":" + body, hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": content_type,
        "User-Agent": AGENT,
        "X-Slack-Request-Timestamp": stamp,
        "X-Slack-Signature": f"v0={digest}",
    }
    return Signed(body, headers)


class HttpHub:
    """Posts every envelope to the app's request URL. Its coroutines live in the server's loop."""

    def __init__(
        self, workspace: Workspace, faults: FaultMenu, request_url: str = "", signing_secret: str = ""
    ) -> None:
        self._workspace = workspace
        self._faults = faults
        self.request_url = request_url
        self.signing_secret = signing_secret
        self._open: list[Envelope] = []
        self.loop: asyncio.AbstractEventLoop | None = None
        self.ack_limit_s = ACK_LIMIT_S
        self.retry_delays_s: tuple[float, ...] = (0.0, 60.0, 300.0)
        """Events are retried at once, after 1 min and after 5 min."""

    @property
    def running(self) -> bool:
        """Whether envelopes can be delivered at all."""
        return self.loop is not None

    # called from any thread

    def deliver(self, kind: str, payload: Json, *, on_settled: OnSettled | None = None) -> Envelope:
        """Send an envelope of kind `events_api`, `slash_commands` or `interactive`; returns at once."""
        envelope = Envelope(str(uuid.uuid4()), kind, payload)
        with self._workspace.change():
            self._workspace.envelopes.append(envelope)
            self._open.append(envelope)
        self._spawn(self._deliver(envelope, on_settled))
        return envelope

    def redeliver(self, envelope: Envelope, *, reason: str = "http_timeout") -> None:
        """Send an envelope once more, freshly signed, as Slack does when it did not see the answer."""
        self._spawn(self._attempt(envelope, self._sign(envelope, reason=reason)))

    def verify_url(self, timeout_s: float = 10.0) -> bool:
        """Ask the app for its challenge, as Slack does when a request URL is saved."""
        challenge = uuid.uuid4().hex
        body = json.dumps({"type": "url_verification", "token": VERIFICATION, "challenge": challenge}).encode()
        request = signed(body, "application/json", self.signing_secret)
        answer = asyncio.run_coroutine_threadsafe(self._post(request), self._needed_loop()).result(timeout_s)
        return answer.status == httpx.codes.OK and challenge in answer.text

    def went_down(self) -> None:
        """The server stopped: nobody will acknowledge what is still open."""
        self.loop = None
        for envelope in list(self._open):
            self._settle(envelope, failure="dispatch_failed")

    def _needed_loop(self) -> asyncio.AbstractEventLoop:
        if self.loop is None:
            raise PersonError("the workspace is down: the sandbox is not running")
        return self.loop

    def _spawn(self, work: Coroutine[Any, Any, object]) -> None:
        try:
            asyncio.run_coroutine_threadsafe(work, self._needed_loop())
        except PersonError:
            work.close()
            raise

    # in the loop

    async def _deliver(self, envelope: Envelope, on_settled: OnSettled | None) -> None:
        fault = self._faults.take_envelope(envelope.kind)
        kind = fault.kind if fault is not None else ""
        request = self._sign(envelope, fault=kind)
        answer = await self._attempt(envelope, request, lose=kind == "drop_ack")
        if kind == "replay":
            await self._attempt(envelope, request)
        if kind in {"duplicate_envelope", "other_socket"}:
            await self._attempt(envelope, self._sign(envelope))
        if envelope.kind == "events_api":
            for delay_s in self.retry_delays_s:
                if envelope.acked_ms is not None or answer.no_retry:
                    break
                await asyncio.sleep(delay_s)
                answer = await self._attempt(envelope, self._sign(envelope, reason=answer.lost or "http_error"))
        if envelope.acked_ms is not None and on_settled is not None:
            on_settled(envelope)
        timed_out = answer.lost == "http_timeout"
        failure = None if envelope.acked_ms is not None else "operation_timeout" if timed_out else "dispatch_failed"
        self._settle(envelope, failure=failure)

    def _sign(self, envelope: Envelope, *, fault: str = "", reason: str = "") -> Signed:
        body, content_type = encoded(envelope.kind, envelope.payload)
        at = time.time() - OLD_S if fault == "old_timestamp" else None
        secret = "not-" + self.signing_secret if fault == "wrong_signature" else self.signing_secret
        request = signed(body, content_type, secret, at=at)
        if fault == "no_signature":
            request.headers.pop("X-Slack-Signature")
        if reason:
            request.headers.update({"X-Slack-Retry-Num": str(envelope.attempts), "X-Slack-Retry-Reason": reason})
        return request

    async def _attempt(self, envelope: Envelope, request: Signed, *, lose: bool = False) -> Answer:
        with self._workspace.change():
            envelope.attempts += 1
            envelope.attempt_at = time.time()
            envelope.sent_at = envelope.sent_at or envelope.attempt_at
        answer = await self._post(request)
        if lose:
            answer = Answer(0, lost="http_timeout")
        with self._workspace.change():
            envelope.statuses.append(answer.status)
            envelope.expired = envelope.expired or answer.lost == "http_timeout"
            if answer.status == httpx.codes.OK:
                envelope.acks += 1
                if envelope.acked_ms is None:
                    envelope.acked_ms = (time.time() - envelope.attempt_at) * 1000
                    self._keep_payload(envelope, answer.text)
        return answer

    async def _post(self, request: Signed) -> Answer:
        try:
            async with httpx.AsyncClient(trust_env=False, timeout=2 * self.ack_limit_s) as client:
                sent = client.post(self.request_url, content=request.body, headers=request.headers)
                # the client's own limit is one a phase; this one is for the whole exchange
                found = await asyncio.wait_for(sent, self.ack_limit_s)
        except TimeoutError:
            return Answer(0, lost="http_timeout")
        except httpx.HTTPError:
            return Answer(0, lost="connection_failed")
        return Answer(found.status_code, found.text, no_retry=found.headers.get("x-slack-no-retry") == "1")

    def _keep_payload(self, envelope: Envelope, text: str) -> None:
        """A command's answer may be JSON or plain text; nobody reads what comes with a click or an event."""
        if not text:
            return
        try:
            found = json.loads(text)
        except ValueError:
            found = {"text": text}
        envelope.ack_payload = found if isinstance(found, dict) and found else None
        if envelope.ack_payload and not takes_payload(envelope):
            what = str(envelope.payload.get("type", envelope.kind))
            self._workspace.record_violation(
                Violation(what, "ack_payload_ignored", f"an acknowledgement of {what} carries nothing")
            )

    def _settle(self, envelope: Envelope, *, failure: str | None = None) -> None:
        with self._workspace.change():
            if envelope in self._open:
                self._open.remove(envelope)
            envelope.failure = envelope.failure or failure
            envelope.settled.set()
