"""A command that stays on an open channel and answers each line with one line."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from time import monotonic

import paramiko

from policies.errors import HostAnswerLost, HostUnreachable
from policies.fleet import Host
from workers.shells import GRACE_S, TAIL_BYTES
from workers.shells.exchange import TICK_S, WRITE_TICK_S
from workers.shells.fork import must_be_own
from workers.shells.link import Link, NotSent, NotSentInTime
from workers.shells.outputs import Outputs
from workers.shells.vendor import FAILURES, lost, refused, unreachable


class LinkSession:
    """A `Session` on `channel`. `release` is called once with whether the connection is to be met anew."""

    def __init__(self, host: Host, link: Link, channel: paramiko.Channel, release: Callable[[bool], None]) -> None:
        self._host, self._link, self._channel = host, link, channel
        self._release: Callable[[bool], None] | None = release
        self._pid = os.getpid()
        self._arriving = Outputs(link, channel)
        self._kept = bytearray()  # of stdout
        self._err = bytearray()

    @property
    def alive(self) -> bool:
        """Open at both ends, as far as was heard."""
        open_here = self._release is not None and self._link.is_active()
        return open_here and not self._arriving.ended and self._arriving.status is None

    @property
    def said(self) -> bytes:
        """The end of what came on stderr."""
        return bytes(self._err)

    def start(self, command: str, prefix: bytes, *, until: float) -> None:
        """Send the command and what it reads first; the host's answer to that is heard with the first call.

        Raises: HostUnreachable.
        """
        try:
            if not self._link.request_exec(self._channel, command, until=until):
                raise EOFError
            sent = self._send(memoryview(prefix), until)
            if sent < len(prefix) and self.alive and not self._channel.closed:
                raise TimeoutError  # a command that ended without reading is told of by the first call
        except FAILURES as error:
            self._end(retire=isinstance(error, TimeoutError))
            raise unreachable(self._host, error) from error

    def call(self, line: bytes, *, deadline_s: float, max_output_bytes: int) -> bytes:
        """Send one line and give the one that answers it; see `Session.call`."""
        must_be_own(self._pid, "session")
        started = monotonic()
        until = started + deadline_s
        begun = False
        try:
            self._take(until)
            if not self.alive or self._kept:
                raise self._unsent(self._early())
            view = memoryview(line + b"\n")
            begun = True
            count = self._send(view, until)
            if not count:
                raise self._unsent(TimeoutError() if self.alive else EOFError())
            if count == len(view):
                answer = self._answer(until, max_output_bytes)
                if answer is not None:
                    return answer
            raise self._lost(monotonic() - started, ended=not self.alive)
        except FAILURES as error:
            if not begun or isinstance(error, NotSent | NotSentInTime):
                raise self._unsent(error) from error
            # what was being sent may have left in part or as a whole: say unknown
            self._end(retire=True)
            raise lost(self._host, error) from error

    def close(self) -> None:
        """Close the channel, and with it the command's stdin."""
        self._end(retire=False)

    def _send(self, view: memoryview, until: float) -> int:
        """Send as much as the peer takes until then; gives the number of bytes."""
        count = 0
        while count < len(view):
            try:
                wrote = self._link.send_data(self._channel, view[count:], until=until)
            except (NotSent, NotSentInTime):
                if count:
                    return count
                raise
            count += wrote
            if not wrote:
                if not self.alive or monotonic() >= until:
                    return count
                self._take(until)
                self._arriving.bell.wait(WRITE_TICK_S)
        return count

    def _answer(self, until: float, cap: int) -> bytes | None:
        """The next line of stdout; None when the command ended first or time is over."""
        searched = 0
        while True:
            self._arriving.bell.reset()
            ended = not self.alive
            self._take(until)
            at = self._kept.find(b"\n", searched)
            if at >= 0 and at <= cap:
                answer = bytes(self._kept[:at])
                del self._kept[: at + 1]
                return answer
            searched = len(self._kept)
            if at >= 0 or searched > cap:
                self._end(retire=False)
                raise lost(self._host, f"it is longer than {cap} bytes")
            now = monotonic()
            if ended or now >= until:
                return None
            self._arriving.bell.wait(min(TICK_S, until - now))

    def _take(self, until: float) -> None:
        out, err = self._arriving.take(until)
        self._kept += out
        self._err = (self._err + err)[-TAIL_BYTES:]

    def _early(self) -> Exception | str:
        """Why nothing can be sent."""
        if self._release is None:
            return "the session is closed"
        if self.alive:
            return "it said something without being asked"
        return self._ending()

    def _ending(self) -> Exception | str:
        """How the command ended: its status and last words come after the end of its output."""
        give_up = monotonic() + GRACE_S
        while self._link.is_active() and not self._channel.closed and monotonic() < give_up:
            self._arriving.bell.reset()
            with contextlib.suppress(*FAILURES):
                self._take(give_up)
            self._arriving.bell.wait(WRITE_TICK_S)
        status = self._arriving.status
        words = " ".join(self._err.decode("utf-8", "replace").split())[-200:]
        if status is not None:
            return f"the command ended with status {status}: {words or 'nothing on stderr'}"
        if not self._link.is_active():
            return self._link.get_exception() or EOFError()
        return "the host closed the session"

    def _unsent(self, reason: Exception | str) -> HostUnreachable:
        self._end(retire=isinstance(reason, TimeoutError))
        if isinstance(reason, Exception):
            return unreachable(self._host, reason)
        return HostUnreachable(f"a session on host '{self._host.name}' is over, nothing was done: {reason}")

    def _lost(self, took_s: float, *, ended: bool) -> HostUnreachable | HostAnswerLost:
        notes = self._link.notes.get(self._channel.chanid)
        if notes is not None and notes.refused:
            self._end(retire=False)
            return refused(self._host)
        error = lost(self._host, self._ending() if ended else f"no answer within {took_s:.1f} s")
        # a host that let time run out may be frozen: the next command meets it anew
        self._end(retire=not ended)
        return error

    def _end(self, *, retire: bool) -> None:
        release, self._release = self._release, None
        if release is not None and os.getpid() == self._pid:
            self._link.notes.pop(self._channel.chanid, None)
            release(retire)
