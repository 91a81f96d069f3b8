"""The TCP door of a demo host: forwards bytes to its SSH server and can be told to misbehave."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

CHUNK_BYTES = 65536
BUFFERED_CHUNKS = 64  # a direction holds at most 4 MiB while it is delayed or frozen


@dataclass(slots=True, eq=False)
class Link:
    """One open connection: both sockets and the tasks that pump them."""

    outer: socket.socket
    inner: socket.socket
    tasks: list[asyncio.Task[None]] = field(default_factory=list)


class Wire:
    """Listens on a loopback port; `serve` gets the inner socket of each connection. Loop thread only."""

    def __init__(self, serve: Callable[[socket.socket], Awaitable[None]], address: str = "127.0.0.1") -> None:
        self._serve = serve
        self._address = address
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._links: set[Link] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self.delay_s = 0.0
        self.port = 0

    async def open(self) -> None:
        """Listen (again), always on the same port once one was chosen."""
        if self._listener is not None:
            return
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setblocking(False)
        listener.bind((self._address, self.port))
        listener.listen(128)
        self.port = int(listener.getsockname()[1])
        self._listener = listener
        self._accepting = asyncio.create_task(self._accept(listener))

    async def refuse(self) -> None:
        """Close the listening socket: new connections are refused by the kernel, old ones go on."""
        if self._accepting is not None:
            self._accepting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._accepting
        if self._listener is not None:
            self._listener.close()
        self._accepting = self._listener = None

    async def drop(self) -> None:
        """Cut every open connection now."""
        links = list(self._links)
        for link in links:
            for task in link.tasks:
                task.cancel()
        for link in links:
            await asyncio.gather(*link.tasks, return_exceptions=True)
            self._close(link)

    def freeze(self) -> None:
        """Stop moving bytes; connections stay open and are still accepted, as with a stopped sshd."""
        self._flowing.clear()

    def thaw(self) -> None:
        """Move bytes again, those that waited first."""
        self._flowing.set()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            outer, _ = await loop.sock_accept(listener)
            outer.setblocking(False)
            outer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            inner, far = socket.socketpair()
            inner.setblocking(False)
            far.setblocking(False)
            link = Link(outer, inner)
            self._links.add(link)
            link.tasks = [asyncio.create_task(self._run(link, far))]

    async def _run(self, link: Link, far: socket.socket) -> None:
        """Pump both ways until one side is done with the connection."""
        serving = asyncio.ensure_future(self._serve(far))
        link.tasks.append(serving)
        up = asyncio.create_task(self._pump(link.outer, link.inner))
        down = asyncio.create_task(self._pump(link.inner, link.outer))
        link.tasks += [up, down]
        await asyncio.wait({up, down}, return_when=asyncio.FIRST_COMPLETED)
        if up.done() and not down.done():  # the client left: let the server notice, then say what it still has
            with contextlib.suppress(OSError):
                link.inner.shutdown(socket.SHUT_WR)
            await asyncio.wait({down}, timeout=1.0)
        up.cancel()
        down.cancel()
        await asyncio.gather(up, down, return_exceptions=True)
        self._close(link)

    async def _pump(self, source: socket.socket, target: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(BUFFERED_CHUNKS)
        writer = asyncio.create_task(self._write(chunks, target))
        try:
            while True:
                data = await loop.sock_recv(source, CHUNK_BYTES)
                await chunks.put((loop.time() + self.delay_s, data))
                if not data:
                    break
            await writer
        except OSError:
            return  # reset by the peer: the connection ends like any other
        finally:
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)

    async def _write(self, chunks: asyncio.Queue[tuple[float, bytes]], target: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due, data = await chunks.get()
            if not data:
                return
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            await self._flowing.wait()
            with contextlib.suppress(OSError):  # the reader of this direction went away first
                await loop.sock_sendall(target, data)

    def _close(self, link: Link) -> None:
        link.outer.close()
        link.inner.close()
        self._links.discard(link)
