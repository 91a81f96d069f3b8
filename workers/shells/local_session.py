"""A process on this machine that stays and answers each line with one line."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
from time import monotonic
from typing import IO, cast

from policies.errors import HostAnswerLost, HostUnreachable
from policies.fleet import Host
from workers.shells import TAIL_BYTES
from workers.shells.fork import must_be_own

CHUNK_BYTES = 1 << 16
# Units: seconds that a process whose stdin was closed has to end by itself
LEAVE_S = 2.0
# chunks of its last words that are read at most
TAIL_READS = 16


class LocalSession:
    """A `Session` with `process`, which leads a process group of its own."""

    def __init__(self, host: Host, process: subprocess.Popen[bytes]) -> None:
        self._host, self._process = host, process
        self._pid = os.getpid()
        self._stdin, self._stdout, self._stderr = (
            cast("IO[bytes]", pipe) for pipe in (process.stdin, process.stdout, process.stderr)
        )
        self._kept, self._err = bytearray(), bytearray()
        self._closed = self._ended = False
        self._selector = selectors.DefaultSelector()
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        for pipe in (self._stdout, self._stderr):
            self._selector.register(pipe, selectors.EVENT_READ)

    @property
    def alive(self) -> bool:
        """The process runs, as far as is known."""
        return not self._closed and not self._ended and self._process.poll() is None

    @property
    def said(self) -> bytes:
        """The end of what came on stderr."""
        return bytes(self._err)

    def start(self, prefix: bytes, *, until: float) -> None:
        """Write what the process reads first.

        Raises: HostUnreachable.
        """
        if self._send(memoryview(prefix), until) < len(prefix):
            raise self._unsent("it does not read its input")

    def call(self, line: bytes, *, deadline_s: float, max_output_bytes: int) -> bytes:
        """Send one line and give the one that answers it; see `Session.call`."""
        must_be_own(self._pid, "session")
        until = monotonic() + deadline_s
        if not self._closed:
            self._take(0.0)
        if not self.alive or self._kept:
            raise self._unsent("it said something without being asked" if self.alive else self._ending())
        view = memoryview(line + b"\n")
        count = self._send(view, until)
        if not count:
            raise self._unsent("it does not read its input" if self.alive else self._ending())
        searched = 0
        while count == len(view):
            ended = not self.alive
            self._take(0.0)
            at = self._kept.find(b"\n", searched)
            if 0 <= at <= max_output_bytes:
                answer = bytes(self._kept[:at])
                del self._kept[: at + 1]
                return answer
            searched = len(self._kept)
            if at >= 0 or searched > max_output_bytes:
                raise self._lost(f"it is longer than {max_output_bytes} bytes")
            left_s = until - monotonic()
            if ended or left_s <= 0:
                break
            self._take(left_s)
        raise self._lost(f"no answer within {deadline_s:g} s" if self.alive else self._ending())

    def close(self) -> None:
        """Close stdin; a process that does not end then is killed with its children."""
        self._end(LEAVE_S)

    def _send(self, view: memoryview, until: float) -> int:
        """Write as much as the process reads until then; gives the number of bytes."""
        count = 0
        self._selector.register(self._stdin, selectors.EVENT_WRITE)
        try:
            while count < len(view):
                try:
                    count += os.write(self._stdin.fileno(), view[count : count + CHUNK_BYTES])
                except BlockingIOError:
                    left_s = until - monotonic()
                    if left_s <= 0:
                        break
                    self._take(left_s)
                except BrokenPipeError:
                    self._ended = True
                    break
        finally:
            self._selector.unregister(self._stdin)
        return count

    def _take(self, timeout_s: float) -> None:
        """Read what comes until then, without staying longer than for the first of it."""
        for key, _ in self._selector.select(timeout_s):
            if key.fileobj is self._stdin:
                continue
            data = os.read(key.fd, CHUNK_BYTES)
            if not data:
                self._ended = self._ended or key.fileobj is self._stdout
                self._selector.unregister(key.fileobj)
            elif key.fileobj is self._stdout:
                self._kept += data
            else:
                self._err = (self._err + data)[-TAIL_BYTES:]

    def _ending(self) -> str:
        if self._closed:
            return "the session is closed"
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(LEAVE_S)
        for _ in range(TAIL_READS):
            self._take(0.0)
        words = " ".join(self._err.decode("utf-8", "replace").split())[-200:]
        return f"the command ended with status {self._process.poll()}: {words or 'nothing on stderr'}"

    def _unsent(self, reason: str) -> HostUnreachable:
        self._end(0.0)
        return HostUnreachable(f"a session on host '{self._host.name}' is over, nothing was done: {reason}")

    def _lost(self, reason: str) -> HostAnswerLost:
        self._end(0.0)
        return HostAnswerLost(
            f"the command was sent to host '{self._host.name}' and its answer was lost: {reason}",
            hint="ask the host what happened before anything is repeated",
        )

    def _end(self, leave_s: float) -> None:
        if self._closed or os.getpid() != self._pid:
            return
        self._closed = True
        self._stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(leave_s)
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._selector.close()
        for pipe in (self._stdout, self._stderr):
            pipe.close()
