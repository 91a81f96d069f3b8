"""How a command reaches a host: one interface, over SSH (`ssh.py`) or on this machine (`local.py`).

A command is an argument list. It is quoted for the remote shell once, in `ssh.py`, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from policies.fleet import Host

# after the exit status is known: how long output may stay silent before it is taken as complete. A child that
# was left in the background (`sleep 20 & echo up`) keeps the output open for as long as it lives.
# Source: FACTS-ssh.md, status after 0.1 s and output open for 20 s.
GRACE_S = 0.5


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


class Shell(Protocol):
    """Runs one command on a host."""

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
