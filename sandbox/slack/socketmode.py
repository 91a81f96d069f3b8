"""Socket Mode: sockets, envelopes, the 3 s acknowledgement timer, redelivery, disconnects."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import secrets
import time
import uuid
from dataclasses import dataclass, field

from starlette.websockets import WebSocket, WebSocketDisconnect

from sandbox.slack.delivery import ACK_LIMIT_S, OnSettled, takes_payload
from sandbox.slack.errors import PersonError
from sandbox.slack.faults import FaultMenu
from sandbox.slack.records import Envelope, Json, Violation
from sandbox.slack.responses import Tickets
from sandbox.slack.workspace import Workspace

MOST_SOCKETS = 10
"""Source: ten connections per app."""


@dataclass(slots=True)
class Socket:
    """One connection of the app."""

    name: str
    websocket: WebSocket
    closing: bool = False
    sending: asyncio.Lock = field(default_factory=asyncio.Lock)


class SocketHub:
    """Routes each envelope to one open socket at random. Its coroutines live in the server's loop."""

    def __init__(self, workspace: Workspace, tickets: Tickets, faults: FaultMenu) -> None:
        self._workspace = workspace
        self._tickets = tickets
        self._faults = faults
        self._sockets: list[Socket] = []
        self._open: dict[str, tuple[Envelope, OnSettled | None]] = {}
        self._lost: set[str] = set()
        self._background: set[asyncio.Task[None]] = set()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.ack_limit_s = ACK_LIMIT_S
        self.retry_delays_s: tuple[float, ...] = (0.0, 60.0, 300.0)
        """Events are retried at once, after 1 min and after 5 min."""

    @property
    def connected(self) -> int:
        """How many sockets may get envelopes now."""
        with self._workspace.lock:
            return sum(not socket.closing for socket in self._sockets)

    @property
    def running(self) -> bool:
        """Whether envelopes can be delivered at all."""
        return self.loop is not None

    # called from any thread

    def deliver(self, kind: str, payload: Json, *, on_settled: OnSettled | None = None) -> Envelope:
        """Send an envelope of kind `events_api`, `slash_commands` or `interactive`; returns at once."""
        if not self.running:
            raise PersonError("the workspace is down: the sandbox is not running")
        envelope = Envelope(str(uuid.uuid4()), kind, payload)
        with self._workspace.change():
            self._workspace.envelopes.append(envelope)
            self._open[envelope.envelope_id] = (envelope, on_settled)
        self._spawn(self._first_delivery(envelope))
        return envelope

    def redeliver(self, envelope: Envelope, *, reason: str = "timeout") -> None:
        """Send an envelope once more under the same ids, on another socket where there is one."""
        self._spawn(self._send(envelope, reason=reason))

    def disconnect(
        self, reason: str = "refresh_requested", *, close_old: bool = True, all_sockets: bool = True
    ) -> None:
        """Ask the app to reconnect; the old socket stays open with `close_old=False`."""
        self._spawn(self._disconnect(reason, close_old=close_old, all_sockets=all_sockets))

    def _spawn(self, work: object) -> None:
        loop = self.loop
        if loop is None or not asyncio.iscoroutine(work):
            if asyncio.iscoroutine(work):
                work.close()
            raise PersonError("the workspace is down: the sandbox is not running")

        def start() -> None:
            task: asyncio.Task[None] = loop.create_task(work)
            self._background.add(task)
            task.add_done_callback(self._background.discard)

        loop.call_soon_threadsafe(start)

    def went_down(self) -> None:
        """The server stopped: nobody will acknowledge what is still open."""
        self.loop = None
        with self._workspace.change():
            self._sockets.clear()
            for envelope, _ in self._open.values():
                if not envelope.settled.is_set():
                    envelope.failure = "dispatch_failed"
                    envelope.settled.set()
            self._open.clear()

    # in the loop

    async def _first_delivery(self, envelope: Envelope) -> None:
        fault = self._faults.take_envelope(envelope.kind)
        await self._send(envelope, lose_ack=fault is not None and fault.kind == "drop_ack")
        if fault is not None and fault.kind == "duplicate_envelope":
            await self._send(envelope, same_socket=True)
        if fault is not None and fault.kind == "other_socket":
            await self._send(envelope)

    async def _send(
        self, envelope: Envelope, *, reason: str = "", same_socket: bool = False, lose_ack: bool = False
    ) -> None:
        usable = [socket for socket in self._sockets if not socket.closing]
        if same_socket:
            usable = [socket for socket in usable if socket.name == envelope.sockets[-1]] or usable
        elif envelope.sockets:
            usable = [socket for socket in usable if socket.name != envelope.sockets[-1]] or usable
        if not usable:
            await self._no_socket(envelope)
            return
        socket = random.choice(usable)
        frame: Json = {
            "envelope_id": envelope.envelope_id,
            "type": envelope.kind,
            "payload": envelope.payload,
            "accepts_response_payload": takes_payload(envelope),
        }
        if envelope.kind == "events_api":
            retries = envelope.attempts if reason else 0
            frame |= {"retry_attempt": retries, "retry_reason": reason}
        with self._workspace.change():
            envelope.attempts += 1
            envelope.sockets.append(socket.name)
            envelope.attempt_at = time.time()
            envelope.sent_at = envelope.sent_at or envelope.attempt_at
        if lose_ack:
            self._lost.add(envelope.envelope_id)
        asyncio.get_running_loop().call_later(self.ack_limit_s, self._limit_reached, envelope, envelope.attempts)
        try:
            async with socket.sending:
                await socket.websocket.send_text(json.dumps(frame))
        except (WebSocketDisconnect, RuntimeError):
            self._drop(socket)
            await self._send(envelope, reason=reason)

    async def _no_socket(self, envelope: Envelope) -> None:
        if envelope.kind == "events_api" and envelope.attempts <= len(self.retry_delays_s):
            self._retry_later(envelope, "connection_failed")
            return
        self._settle(envelope, failure="dispatch_failed")

    def _limit_reached(self, envelope: Envelope, attempt: int) -> None:
        """3 s are over: the person sees `operation_timeout`, an event is sent again."""
        if envelope.acked_ms is not None or attempt != envelope.attempts:
            return
        with self._workspace.change():
            envelope.expired = True
        if envelope.kind == "events_api" and envelope.attempts <= len(self.retry_delays_s):
            self._retry_later(envelope, "timeout")
            return
        self._settle(envelope, failure="operation_timeout")

    def _retry_later(self, envelope: Envelope, reason: str) -> None:
        delay_s = self.retry_delays_s[min(envelope.attempts, len(self.retry_delays_s)) - 1]
        if envelope.attempts == 0:
            with self._workspace.change():
                envelope.attempts += 1
        loop = asyncio.get_running_loop()
        loop.call_later(delay_s, lambda: self._spawn(self._send(envelope, reason=reason)))

    def _settle(self, envelope: Envelope, *, failure: str | None = None) -> None:
        with self._workspace.change():
            envelope.failure = failure
            envelope.settled.set()

    async def _disconnect(self, reason: str, *, close_old: bool, all_sockets: bool) -> None:
        frame = json.dumps({"type": "disconnect", "reason": reason, "debug_info": {"host": "sandbox"}})
        open_now = [socket for socket in self._sockets if not socket.closing]
        for socket in open_now if all_sockets else open_now[:1]:
            if reason != "warning":
                socket.closing = True
            with contextlib.suppress(WebSocketDisconnect, RuntimeError):
                async with socket.sending:
                    await socket.websocket.send_text(frame)
                if close_old and reason != "warning":
                    await socket.websocket.close()

    def _drop(self, socket: Socket) -> None:
        with self._workspace.change():
            socket.closing = True
            if socket in self._sockets:
                self._sockets.remove(socket)

    async def serve(self, websocket: WebSocket) -> None:
        """One connection from its ticket to its end."""
        self.loop = asyncio.get_running_loop()
        if not self._tickets.admit(websocket.query_params.get("ticket", "")):
            await websocket.close(code=1008)
            return
        await websocket.accept()
        if self.connected >= MOST_SOCKETS:
            await websocket.send_text(json.dumps({"type": "disconnect", "reason": "too_many_websockets"}))
            await websocket.close()
            return
        socket = Socket("socket-" + secrets.token_hex(3), websocket)
        hello: Json = {
            "type": "hello",
            "num_connections": self.connected + 1,
            "debug_info": {"host": "sandbox", "started": "", "build_number": 1, "approximate_connection_time": 3600},
            "connection_info": {"app_id": self._workspace.app.app_id},
        }
        try:
            await websocket.send_text(json.dumps(hello))
            with self._workspace.change():
                self._sockets.append(socket)
            while True:
                self._received(await websocket.receive_text())
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            self._drop(socket)

    def _received(self, text: str) -> None:
        """An acknowledgement; anything else from the app is ignored, as the platform does."""
        try:
            answer = json.loads(text)
        except ValueError:
            return
        entry = self._open.get(answer.get("envelope_id", "")) if isinstance(answer, dict) else None
        if entry is None:
            return
        envelope, on_settled = entry
        if envelope.envelope_id in self._lost:
            self._lost.discard(envelope.envelope_id)
            return
        with self._workspace.change():
            envelope.acks += 1
        if envelope.acked_ms is not None:
            return
        waited_s = time.time() - envelope.attempt_at
        with self._workspace.change():
            envelope.acked_ms = waited_s * 1000
            envelope.late = waited_s > self.ack_limit_s
            payload = answer.get("payload")
            envelope.ack_payload = payload if isinstance(payload, dict) and payload else None
        if envelope.ack_payload and not takes_payload(envelope):
            what = envelope.payload.get("type", envelope.kind)
            self._workspace.record_violation(
                Violation(str(what), "ack_payload_ignored", f"an acknowledgement of {what} carries nothing")
            )
        if on_settled is not None and not envelope.late:
            on_settled(envelope)
        with self._workspace.change():
            envelope.settled.set()
