"""One command on an open channel: input, both outputs and the end, within one wall-clock deadline."""

from __future__ import annotations

from time import monotonic

import paramiko

from policies.fleet import Host
from workers.shells import GRACE_S, Done
from workers.shells.link import Link
from workers.shells.outputs import Outputs
from workers.shells.vendor import FAILURES, lost, refused, unreachable

# Units: seconds. While waiting: for an exit status that comes alone, and for room to write.
TICK_S = 0.1
WRITE_TICK_S = 0.01


class Exchange:
    """Runs one command on `channel`. Input is written while output is read, so neither can block the other."""

    def __init__(
        self, host: Host, link: Link, channel: paramiko.Channel, *, until: float, max_output_bytes: int
    ) -> None:
        self._host, self._link, self._channel = host, link, channel
        self._until = until
        self._cap = max_output_bytes
        self._out, self._err = bytearray(), bytearray()
        self._truncated = False
        self._arriving = Outputs(link, channel)
        self._last_byte_at: float | None = None  # counted from the exit status on
        self.timed_out = False

    def run(self, command: str, stdin: bytes) -> Done:
        """Send the command and stay until its end.

        Raises: HostUnreachable when it was not sent or the host refused to run it; HostAnswerLost when it was sent and
        no exit status came.
        """
        started = monotonic()
        try:
            if not self._link.is_active() or self._channel.closed:
                raise unreachable(self._host, EOFError())
            try:
                if not self._link.request_exec(self._channel, command, until=self._until):
                    raise unreachable(self._host, EOFError())
                self._talk(memoryview(stdin))
            except FAILURES as error:
                # the request may have left in part or as a whole: say unknown
                if self._arriving.status is None:
                    raise lost(self._host, error) from error
            return self._result(monotonic() - started)
        finally:
            self._link.notes.pop(self._channel.chanid, None)

    def _talk(self, stdin: memoryview) -> None:
        """Write and read until the output ends, or the grace after the exit status, or the deadline."""
        eof_sent = False
        while True:
            self._arriving.bell.reset()
            ended = self._arriving.ended
            read = self._read()
            wrote = 0
            if stdin:
                wrote = self._link.send_data(self._channel, stdin, until=self._until)
                stdin = stdin[wrote:]
            if not stdin and not eof_sent:
                self._link.send_eof(self._channel, until=self._until)
                eof_sent = True
            if not read and ended and (self._arriving.status is not None or self._channel.closed):
                return
            now = monotonic()
            if self._arriving.status is not None:
                if read or self._last_byte_at is None:
                    self._last_byte_at = now
                if now - self._last_byte_at >= GRACE_S:
                    return
            if now >= self._until:
                self.timed_out = True
                return
            if not read and not wrote:
                tick = WRITE_TICK_S if stdin and not self._channel.closed else TICK_S
                self._arriving.bell.wait(min(tick, self._until - now))

    def _read(self) -> int:
        """Take what is there from stdout and stderr; beyond the cap it is read and dropped."""
        out, err = self._arriving.take(self._until)
        for data, kept in ((out, self._out), (err, self._err)):
            room = self._cap - len(kept)
            kept.extend(data[: max(room, 0)])
            self._truncated = self._truncated or len(data) > room
        return len(out) + len(err)

    def _result(self, took_s: float) -> Done:
        status = self._arriving.status
        notes = self._link.notes[self._channel.chanid]
        if status is not None:
            return Done(status, bytes(self._out), bytes(self._err), took_s, notes.signal, self._truncated)
        if notes.refused:
            raise refused(self._host)
        if self.timed_out:
            raise lost(self._host, f"no end within {took_s:.1f} s")
        if not self._link.is_active():
            raise lost(self._host, self._link.get_exception() or EOFError())
        raise lost(self._host, "the host closed the session without an exit status")
