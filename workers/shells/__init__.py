"""How a command reaches a host: one interface, over SSH (`ssh.py`) or on this machine (`local.py`).

A command is an argument list. It is quoted for the remote shell once, in `ssh.py`, and nowhere else.
A command may also stay and answer line by line: a `Session`, kept for the next caller in `kept.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from policies.errors import HostUnreachable
from policies.fleet import Host

if TYPE_CHECKING:
    from workers.shells.kept import Kept

# after the exit status is known: how long output may stay silent before it is taken as complete. A child that
# was left in the background (`sleep 20 & echo up`) keeps the output open for as long as it lives.
# Source: FACTS-ssh.md, status after 0.1 s and output open for 20 s.
GRACE_S = 0.5
# Units: bytes of what a session last said on stderr that are kept for an error's text
TAIL_BYTES = 2000


class NoRoom(HostUnreachable):
    """No session can be had just now; a command on its own may still run."""


@dataclass(frozen=True, slots=True)
class Done:
    """A command that ended.

    `exit_status` is 0-255, or 128 + n when the command was killed by signal n; `signal` is then its name without SIG.
    `truncated` says that stdout or stderr was longer than asked for and was cut.
    """

    exit_status: int
    stdout: bytes
    stderr: bytes
    took_s: float
    signal: str = ""
    truncated: bool = False


class Session(Protocol):
    """A command that stays and answers each line with one line. For one thread at a time; ends with `close()`."""

    @property
    def alive(self) -> bool:
        """Nothing was heard of its end yet."""
        ...

    @property
    def said(self) -> bytes:
        """The end of what came on stderr."""
        ...

    def call(self, line: bytes, *, deadline_s: float, max_output_bytes: int) -> bytes:
        """Send one line and give the one that answers it, both without their newline.

        After any error the session is closed.

        Raises: HostUnreachable when nothing of the line was sent; HostAnswerLost afterwards.
        """
        ...

    def close(self) -> None:
        """End it. Safe to call twice."""
        ...


class Shell(Protocol):
    """Runs commands on hosts."""

    @property
    def kept(self) -> Kept:
        """Its sessions that wait for their next line."""
        ...

    def run(
        self, host: Host, argv: Sequence[str], *, stdin: bytes = b"", deadline_s: float, max_output_bytes: int
    ) -> Done:
        """Run `argv` with `stdin` and give its end.

        After the exit status is known, output is read until it ends, or is silent for `GRACE_S`, or the deadline.

        Units: `deadline_s` is wall-clock time for everything, a connection to be made included; `max_output_bytes` is
        the limit for stdout and stderr each.
        Raises: HostUnreachable when nothing was sent; HostAnswerLost when the command was sent and no exit status came.
        """
        ...

    def open(self, host: Host, argv: Sequence[str], *, prefix: bytes = b"", deadline_s: float) -> Session:
        """Start `argv`, write `prefix` to it and leave it running. That it runs is known from its first answer only.

        Units: `deadline_s` bounds the opening, a connection to be made included.
        Raises: NoRoom when the host takes no further session; HostUnreachable.
        """
        ...

    def close(self) -> None:
        """End every session and connection."""
        ...
