"""An SSH server per demo host (asyncssh) with a port and a host key of its own; one thread serves all."""

from __future__ import annotations

import asyncio
import getpass
import logging
import socket
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

import asyncssh

from policies.errors import SettingsError
from sandbox.fleet.session import ExecSession, Wrap
from sandbox.fleet.wire import Wire

START_S = 20.0
LOGIN_S = 30
COMMANDS_END_S = 2.0

T = TypeVar("T")


class SshLoop:
    """The event loop thread of every server in this process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="demo-sshd", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T], timeout_s: float = START_S) -> T:
        """Run `work` in the loop and wait for what it returns."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)

    def stop(self) -> None:
        """End the loop and its thread. Safe to call twice."""
        if self._loop.is_closed():
            return
        self.call(self._cancel_rest())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_S)
        self._loop.close()

    async def _cancel_rest(self) -> None:
        rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        await self._loop.shutdown_default_executor()


class _Door(asyncssh.SSHServer):  # type: ignore[misc]  # asyncssh is not followed by mypy
    """Lets in one user with one key."""

    def __init__(self, host: SshHost) -> None:
        self._host = host

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002 - the signature is asyncssh's
        """Everybody has to show a key."""
        return True

    def public_key_auth_supported(self) -> bool:
        """Keys only."""
        return True

    def validate_public_key(self, username: str, key: Any) -> bool:
        """The one user, the one key."""
        return bool(username == self._host.user and key.public_data == self._host.client_public.public_data)

    def session_requested(self) -> Any:
        """A binary channel and a session for it."""
        return self._host.new_session()


class SshHost:
    """One server. `wrap` turns an argument list into the one that runs on the demo host."""

    def __init__(self, loop: SshLoop, wrap: Wrap, client_public_key: str, address: str = "127.0.0.1") -> None:
        self.address = address
        self.user = getpass.getuser()
        self.client_public = asyncssh.import_public_key(client_public_key)
        self._loop = loop
        self._wrap = wrap
        self._key = asyncssh.generate_private_key("ssh-ed25519")
        self._tasks: set[asyncio.Task[None]] = set()
        self._connections: set[Any] = set()
        self._wire: Wire | None = None

    @property
    def port(self) -> int:
        """The port at its address; 0 before start()."""
        return self._wire.port if self._wire is not None else 0

    @property
    def host_key(self) -> str:
        """The public host key as known_hosts writes it, without the address: `ssh-ed25519 AAAA...`."""
        return " ".join(self._key.export_public_key().decode("ascii").split()[:2])

    def start(self) -> None:
        """Listen on a free port of its address."""
        logging.getLogger("asyncssh").setLevel(logging.WARNING)
        self._loop.call(self._start())

    def stop(self) -> None:
        """Close everything. Commands still running are ended with their host's cgroup. Safe to call twice."""
        if self._wire is not None:
            self._loop.call(self._stop())
            self._wire = None

    def drop_connections(self) -> None:
        """Cut every connection now, as a pulled cable with a reset would."""
        self._loop.call(self._door().drop())

    def refuse(self, refused: bool = True) -> None:
        """Refuse new connections, or accept them again on the same port."""
        self._loop.call(self._door().refuse() if refused else self._door().open())

    def freeze(self, frozen: bool = True) -> None:
        """Stop answering without closing anything, or go on."""
        self._loop.call(self._freeze(frozen))

    def delay(self, delay_ms: float) -> None:
        """Deliver every byte, in each direction, this much later."""
        self._door().delay_s = delay_ms / 1000.0

    def change_host_key(self) -> str:
        """Show a new host key to new connections and return its public half."""
        self._key = asyncssh.generate_private_key("ssh-ed25519")
        return self.host_key

    def new_session(self) -> ExecSession:
        """A session for one command; asked by the door for each channel."""
        return ExecSession(self._wrap, self._keep)

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _door(self) -> Wire:
        if self._wire is None:
            raise SettingsError("this SSH server is not started", hint="start() it first")
        return self._wire

    async def _start(self) -> None:
        self._wire = Wire(self._serve, self.address)
        await self._wire.open()

    async def _freeze(self, frozen: bool) -> None:
        wire = self._door()
        if frozen:
            wire.freeze()
        else:
            wire.thaw()

    async def _serve(self, sock: socket.socket) -> None:
        """Speak SSH on one accepted connection until it ends."""
        try:
            connection = await asyncssh.run_server(
                sock,
                server_factory=lambda: _Door(self),
                server_host_keys=[self._key],
                encoding=None,
                login_timeout=LOGIN_S,
                keepalive_interval=0,
                agent_forwarding=False,
                x11_forwarding=False,
                sftp_factory=None,
                allow_scp=False,
            )
        except (OSError, asyncssh.Error):
            sock.close()
            return  # the client left before it was let in
        self._connections.add(connection)
        try:
            await connection.wait_closed()
        finally:
            self._connections.discard(connection)
            connection.abort()

    async def _stop(self) -> None:
        wire = self._door()
        await wire.refuse()
        wire.thaw()
        await wire.drop()
        for connection in list(self._connections):
            connection.abort()
        if self._tasks:
            _, rest = await asyncio.wait(set(self._tasks), timeout=COMMANDS_END_S)
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)
