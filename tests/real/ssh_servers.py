"""Real SSH servers for tests: OpenSSH's sshd as the current user, and asyncssh in a thread."""

from __future__ import annotations

import asyncio
import getpass
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import asyncssh

from policies.fleet import Host
from tests.ports import free_port
from tests.shared import skip_or_fail

START_S = 60.0


def make_key(path: Path) -> str:
    """Write a private key and give its public half, `ssh-ed25519 AAAA...`."""
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(str(path))
    path.chmod(0o600)
    return " ".join(key.export_public_key().decode().split()[:2])


class Sshd:
    """OpenSSH's sshd on a free port, run by the current user."""

    def __init__(self, folder: Path, *, options: tuple[str, ...] = ()) -> None:
        self.binary = shutil.which("sshd") or "/usr/sbin/sshd"
        if not Path(self.binary).exists():
            skip_or_fail("no OpenSSH server here (package openssh-server)")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.key = folder / "client"
        (folder / "authorized_keys").write_text(make_key(self.key) + "\n")
        self.host_key = make_key(folder / "host")
        self.port = free_port()
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> Sshd:
        """Listen; waits until the port answers."""
        config = self.folder / "sshd_config"
        config.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.folder}/host\n"
            f"AuthorizedKeysFile {self.folder}/authorized_keys\nPidFile none\nUsePAM no\nStrictModes no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
            + "".join(f"{line}\n" for line in self._options)
        )
        log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(
            [*self._plain_shell(), self.binary, "-D", "-e", "-f", str(config)],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        log.close()
        until = time.monotonic() + START_S
        while True:
            with socket.socket() as sock:
                if sock.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < until, "sshd did not start"
            time.sleep(0.02)

    def _plain_shell(self) -> list[str]:
        """Where root may, give the login a plain /bin/sh, so that nobody's .bashrc counts in a test."""
        if os.geteuid() != 0 or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
            return []
        users = self.folder / "passwd"
        lines = [line.split(":") for line in Path("/etc/passwd").read_text().splitlines()]
        users.write_text("".join(":".join([*line[:-1], "/bin/sh"]) + "\n" for line in lines))
        script = 'mount --bind "$0" /etc/passwd && exec "$@"'
        return ["unshare", "-m", "--propagation", "private", "sh", "-c", script, str(users)]

    def stop(self) -> None:
        """End the server and the sessions it forked."""
        if self._process is None:
            return
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)
        self._process.terminate()
        self._process.wait(START_S)
        self._process = None

    def restart_with_new_host_key(self) -> None:
        """The host was installed anew."""
        self.stop()
        self.host_key = make_key(self.folder / "host")
        self.start()

    def children(self) -> list[int]:
        """Processes of its connections, all generations."""
        assert self._process is not None
        found, ask = [], [self._process.pid]
        while ask:
            pid = ask.pop()
            for line in subprocess.run(
                ["ps", "-o", "pid=", "--ppid", str(pid)], check=False, capture_output=True
            ).stdout.split():
                found.append(int(line))
                ask.append(int(line))
        return found

    def sessions(self) -> list[int]:
        """The processes that speak SSH: the children named sshd."""
        return [pid for pid in self.children() if _name(pid) == "sshd"]

    def signal(self, number: int) -> None:
        """Send a signal to every session."""
        for pid in self.sessions():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue

    def host(self, **fields: Any) -> Host:
        """The fleet's view of this server."""
        return Host(
            **{
                "name": "gpu1",
                "address": "127.0.0.1",
                "port": self.port,
                "user": getpass.getuser(),
                "host_key": self.host_key,
            }
            | fields
        )


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


class AsyncSsh:
    """An asyncssh server in a thread. `serve(process)` answers each command, unless `session` makes another session."""

    def __init__(
        self,
        folder: Path,
        serve: Callable[[Any], Awaitable[None]],
        *,
        session: Callable[[], Any] | None = None,
        **options: Any,
    ) -> None:
        self._session = session
        folder.mkdir(parents=True, exist_ok=True)
        self.key = folder / "client"
        self._client = make_key(self.key)
        self._server_key = asyncssh.generate_private_key("ssh-ed25519")
        self.host_key = " ".join(self._server_key.export_public_key().decode().split()[:2])
        self._serve = serve
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.connections: list[Any] = []
        self.port = 0

    def start(self) -> AsyncSsh:
        """Listen on a free port."""
        self._thread.start()
        self.call(self._listen())
        return self

    def call(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run something in the server's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(START_S)

    def stop(self) -> None:
        """Close the server and its thread."""
        self.call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_S)
        self._loop.close()

    def drop(self) -> None:
        """Cut every connection."""

        async def abort() -> None:
            for connection in self.connections:
                connection.abort()

        self.call(abort())

    def host(self, **fields: Any) -> Host:
        """The fleet's view of this server."""
        return Host(
            **{"name": "gpu1", "address": "127.0.0.1", "port": self.port, "user": "ops", "host_key": self.host_key}
            | fields
        )

    async def _listen(self) -> None:
        outer = self

        class Door(asyncssh.SSHServer):  # type: ignore[misc]  # asyncssh is not followed by mypy
            def connection_made(self, conn: Any) -> None:
                outer.connections.append(conn)

        class OtherDoor(Door):
            def session_requested(self) -> Any:
                assert outer._session is not None
                return outer._session()

        self._server = await asyncssh.create_server(
            OtherDoor if self._session else Door,
            "127.0.0.1",
            0,
            server_host_keys=[self._server_key],
            authorized_client_keys=asyncssh.import_authorized_keys(self._client),
            process_factory=None if self._session else self._serve,
            encoding=None,
            **self._options,
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._server.close()
        for connection in self.connections:
            connection.abort()
        await self._server.wait_closed()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
