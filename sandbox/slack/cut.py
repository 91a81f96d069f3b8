"""A response that is none: the TCP connection is reset under the client."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

_TRANSPORTS: dict[tuple[str, int], Any] = {}


class CuttableProtocol(H11Protocol):
    """Keeps its transport findable by the client's address."""

    def connection_made(self, transport: Any) -> None:
        """Remember the transport."""
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        self._peer = (peer[0], peer[1])
        _TRANSPORTS[self._peer] = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
        _TRANSPORTS.pop(self._peer, None)
        super().connection_lost(exc)


class Cut(Response):
    """Resets the connection instead of answering."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - nothing is sent
        transport = _TRANSPORTS[tuple(scope["client"])]
        with contextlib.suppress(OSError):
            # no lingering: the peer sees a reset, not an orderly end
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
        await asyncio.sleep(0.05)  # lets uvicorn notice that the connection is gone
