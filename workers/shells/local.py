"""Commands on this machine, with the rules of a remote one: argument list, deadline, capped output."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import IO, cast

from policies.errors import HostAnswerLost, HostUnreachable
from policies.fleet import Host
from workers.shells import GRACE_S, Done, Session
from workers.shells.kept import Kept, Program
from workers.shells.local_session import LocalSession

CHUNK_BYTES = 1 << 16


class LocalShell:
    """A `Shell` that starts a process here. `env` replaces the environment, `cwd` the folder."""

    def __init__(self, *, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> None:
        self._env = dict(env) if env is not None else None
        self._cwd = cwd
        self._kept = Kept(self._open_program)

    @property
    def kept(self) -> Kept:
        """Sessions that wait for their next line."""
        return self._kept

    def run(
        self, host: Host, argv: Sequence[str], *, stdin: bytes = b"", deadline_s: float, max_output_bytes: int
    ) -> Done:
        """Run `argv`; see `Shell.run`. At the deadline the command and its children are killed."""
        started = monotonic()
        process = self._start(host, argv)
        talk = _Talk(process, stdin, max_output_bytes, started + deadline_s)
        try:
            talk.run()
            if process.poll() is None:
                raise HostAnswerLost(
                    f"the command was started on host '{host.name}' and its answer was lost:"
                    f" no end within {deadline_s:g} s",
                    hint="ask the host what happened before anything is repeated",
                )
        finally:
            talk.close()
        status = process.returncode
        name = signal.Signals(-status).name.removeprefix("SIG") if status < 0 else ""
        return Done(
            128 - status if status < 0 else status,
            bytes(talk.out),
            bytes(talk.err),
            monotonic() - started,
            name,
            talk.truncated,
        )

    def open(self, host: Host, argv: Sequence[str], *, prefix: bytes = b"", deadline_s: float) -> Session:
        """Start `argv` and leave it running; see `Shell.open`."""
        session = LocalSession(host, self._start(host, argv))
        session.start(prefix, until=monotonic() + deadline_s)
        return session

    def close(self) -> None:
        """End every session that waits."""
        self._kept.close()

    def _open_program(self, host: Host, program: Program, deadline_s: float) -> Session:
        return self.open(host, program.argv, prefix=program.prefix, deadline_s=deadline_s)

    def _start(self, host: Host, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                list(argv),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._env,
                cwd=self._cwd,
                start_new_session=True,
            )
        except OSError as error:
            raise HostUnreachable(
                f"'{argv[0]}' cannot be started on host '{host.name}', nothing was done: {error.strerror}",
                hint="check that the program exists and may be run",
            ) from error


class _Talk:
    """Writes stdin and reads both outputs of a process until its end."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes, cap: int, until: float) -> None:
        self._process, self._until, self._cap = process, until, cap
        self._input = memoryview(stdin)
        self.out, self.err = bytearray(), bytearray()
        self.truncated = False
        self._pid_fd = os.pidfd_open(process.pid)
        self._selector = selectors.DefaultSelector()
        self._stdin, self._stdout, self._stderr = (
            cast("IO[bytes]", pipe) for pipe in (process.stdin, process.stdout, process.stderr)
        )
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        self._selector.register(self._pid_fd, selectors.EVENT_READ)
        self._selector.register(self._stdout, selectors.EVENT_READ, self.out)
        self._selector.register(self._stderr, selectors.EVENT_READ, self.err)
        self._selector.register(self._stdin, selectors.EVENT_WRITE)

    def run(self) -> None:
        """Until the process ended and its output did, or was silent for the grace; or until the deadline."""
        quiet_from: float | None = None
        while True:
            now = monotonic()
            ended = self._process.poll() is not None
            if ended and quiet_from is None:
                quiet_from = now
                self._unregister(self._pid_fd)
            limit = min(self._until, quiet_from + GRACE_S) if quiet_from is not None else self._until
            if now >= limit or (ended and not self._reads()):
                return
            for key, _ in self._selector.select(limit - now):
                if key.fileobj is self._stdin:
                    self._write()
                elif isinstance(key.data, bytearray) and self._read(key.fd, key.data):
                    quiet_from = monotonic() if ended else quiet_from

    def close(self) -> None:
        """End the process if it still runs, and close everything."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._selector.close()
        os.close(self._pid_fd)
        for pipe in (self._stdin, self._stdout, self._stderr):
            with contextlib.suppress(OSError):
                pipe.close()

    def _reads(self) -> bool:
        return any(isinstance(key.data, bytearray) for key in self._selector.get_map().values())

    def _read(self, fd: int, kept: bytearray) -> bool:
        """Take some output; beyond the cap it is dropped. False: it ended."""
        data = os.read(fd, CHUNK_BYTES)
        if not data:
            self._unregister(fd)
            return False
        room = self._cap - len(kept)
        kept.extend(data[: max(room, 0)])
        self.truncated = self.truncated or len(data) > room
        return True

    def _write(self) -> None:
        """Give some input, and close it at its end or when nobody reads it."""
        try:
            if self._input:
                self._input = self._input[os.write(self._stdin.fileno(), self._input[:CHUNK_BYTES]) :]
        except BrokenPipeError:
            self._input = self._input[:0]
        if not self._input:
            self._unregister(self._stdin)
            self._stdin.close()

    def _unregister(self, item: int | IO[bytes]) -> None:
        with contextlib.suppress(KeyError):
            self._selector.unregister(item)
