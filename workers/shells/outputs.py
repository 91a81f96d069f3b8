"""What arrives on an open channel: stdout, stderr and how the command ended."""

from __future__ import annotations

import signal

import paramiko

from workers.shells.link import Bell, Link

READ_BYTES = 1 << 20
# output that was read before the peer is told that it may send as much again
WINDOW_STEP_BYTES = 1 << 18


class Outputs:
    """The two streams of a channel, taken without waiting. `bell` rings when there is more, or the channel ended."""

    def __init__(self, link: Link, channel: paramiko.Channel) -> None:
        self._link, self._channel = link, channel
        self._unacknowledged = 0
        self.bell = Bell()
        channel.in_buffer.set_event(self.bell)
        channel.in_stderr_buffer.set_event(self.bell)

    @property
    def ended(self) -> bool:
        """No more output comes than is here already."""
        return bool(self._channel.eof_received) or self._channel.closed

    @property
    def status(self) -> int | None:
        """Exit status, 128 + n for signal n, None while unknown."""
        notes = self._link.notes.get(self._channel.chanid)
        if notes is not None and notes.signal:
            return 128 + signal_number(notes.signal)
        return self._channel.exit_status if self._channel.exit_status >= 0 else None

    def take(self, until: float) -> tuple[bytes, bytes]:
        """What is there of stdout and of stderr; the peer is told that it may send more.

        Raises: as `Link.ordered`.
        """
        out, err = (
            pipe.read(READ_BYTES, 0.0) if pipe.read_ready() else b""
            for pipe in (self._channel.in_buffer, self._channel.in_stderr_buffer)
        )
        self._unacknowledged += len(out) + len(err)
        if self._unacknowledged >= WINDOW_STEP_BYTES:
            self._link.give_window(self._channel, self._unacknowledged, until=until)
            self._unacknowledged = 0
        return out, err


def signal_number(name: str) -> int:
    """Number of `KILL`, `TERM`, ...; 0 for a name that this system does not know."""
    try:
        return signal.Signals[f"SIG{name}"].value
    except KeyError:
        return 0
