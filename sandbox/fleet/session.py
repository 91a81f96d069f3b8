"""One `exec` request: the command under /bin/sh on the demo host, its streams without limits."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

import asyncssh
from asyncssh.packet import UInt32

CHUNK_BYTES = 65536
STDIN_CHUNKS = 64  # at most this many are held before the client is told to wait

Wrap = Callable[[Sequence[str]], list[str]]


class ExecSession(asyncssh.SSHServerSession):  # type: ignore[misc]  # asyncssh is not followed by mypy
    """Runs exactly one command; shells, subsystems and terminals are refused."""

    def __init__(self, wrap: Wrap, keep: Callable[[asyncio.Task[None]], None]) -> None:
        self._wrap = wrap
        self._keep = keep
        self._command = ""
        self._chan: Any = None
        self._stdin: asyncio.Queue[bytes] = asyncio.Queue()
        self._writable = asyncio.Event()
        self._writable.set()
        self._lost = False

    def connection_made(self, chan: Any) -> None:
        """Keep the channel."""
        self._chan = chan

    def shell_requested(self) -> bool:
        """Refuse: only commands run here."""
        return False

    def subsystem_requested(self, subsystem: str) -> bool:  # noqa: ARG002 - the signature is asyncssh's
        """Refuse: only commands run here."""
        return False

    def pty_requested(self, term_type: str, term_size: object, term_modes: object) -> bool:  # noqa: ARG002 - as above
        """Refuse: there is no terminal."""
        return False

    def exec_requested(self, command: str) -> bool:
        """Accept the command."""
        self._command = command
        return True

    def session_started(self) -> None:
        """Start it."""
        self._keep(asyncio.get_running_loop().create_task(self._run()))

    def data_received(self, data: bytes, datatype: object) -> None:  # noqa: ARG002 - as above
        """Bytes for the command's standard input."""
        self._stdin.put_nowait(data)
        if self._stdin.qsize() > STDIN_CHUNKS:
            self._chan.pause_reading()

    def eof_received(self) -> bool:
        """The client closed the command's standard input; its output goes on."""
        self._stdin.put_nowait(b"")
        return True

    def signal_received(self, signal: str) -> None:
        """Ignored: a client that wants an end closes standard input."""

    def pause_writing(self) -> None:
        """The client's window is full."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """There is room again."""
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as above
        """As with a real sshd the command goes on; it reads the end of its input."""
        self._lost = True
        self._stdin.put_nowait(b"")
        self._writable.set()

    async def _run(self) -> None:
        try:
            argv = self._wrap(["/bin/sh", "-c", self._command])
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                limit=CHUNK_BYTES,
                start_new_session=True,
            )
        except Exception as error:  # noqa: BLE001 - a host that cannot start commands answers so, as sshd does
            if not self._lost:
                self._chan.write_stderr(f"{error}\n".encode())
                self._chan.exit(255)
            return
        feed = asyncio.create_task(self._feed(process))
        out = asyncio.create_task(self._forward(process.stdout, None))
        err = asyncio.create_task(self._forward(process.stderr, asyncssh.EXTENDED_DATA_STDERR))
        status = asyncio.create_task(self._report(process))
        try:
            await asyncio.gather(out, err)  # may end after the status: a background child may hold the output open
            if not self._lost:
                self._chan.write_eof()
            await status
            if not self._lost:
                self._chan.close()
        finally:
            for task in (feed, out, err, status):
                task.cancel()
            await asyncio.gather(feed, out, err, status, return_exceptions=True)
            if process.stdin is not None:
                process.stdin.close()

    async def _report(self, process: asyncio.subprocess.Process) -> None:
        code = await _exit_code(process)
        if self._lost:
            return
        if code >= 0:
            kind, payload = b"exit-status", UInt32(code & 0xFF)
        else:
            name = signal.Signals(-code).name.removeprefix("SIG").encode()
            kind, payload = b"exit-signal", UInt32(len(name)) + name + b"\0" + UInt32(0) + UInt32(0)
        self._chan._send_request(kind, payload)  # noqa: SLF001 - exit() would close before the output ends

    async def _feed(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None  # noqa: S101 - opened as a pipe above
        while data := await self._stdin.get():
            with contextlib.suppress(OSError):  # the command closed its input: the rest is thrown away
                process.stdin.write(data)
                await process.stdin.drain()
            if self._stdin.qsize() <= STDIN_CHUNKS // 2 and not self._lost:
                self._chan.resume_reading()
        with contextlib.suppress(OSError):
            process.stdin.close()

    async def _forward(self, source: asyncio.StreamReader | None, datatype: int | None) -> None:
        assert source is not None  # noqa: S101 - opened as a pipe above
        while data := await source.read(CHUNK_BYTES):
            await self._writable.wait()
            if not self._lost:  # else read on and throw away, so that the command is not stopped by a full pipe
                self._chan.write(data, datatype)


async def _exit_code(process: asyncio.subprocess.Process) -> int:
    """The exit code when the process itself ends; `Process.wait()` also waits for the last holder of its pipes."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    try:
        handle = os.pidfd_open(process.pid)
    except OSError:
        ended.set()  # reaped already
    else:
        loop.add_reader(handle, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(handle)
            os.close(handle)
    while process.returncode is None:  # the reaper of asyncio needs a moment more
        await asyncio.sleep(0.001)
    return process.returncode
