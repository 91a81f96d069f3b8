"""Ports of the loopback that are taken before their server listens, so that nobody else is given them by chance."""

from __future__ import annotations

import socket
from collections.abc import Iterable


def hold_port() -> socket.socket:
    """A socket bound to a free port of 127.0.0.1 that does not listen.

    The kernel gives such a port to nobody who asks for any port, refuses connections to it, and lets a server bind it
    that sets SO_REUSEADDR, as often as it restarts. Close the socket when the port is no longer needed.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


def number(held: socket.socket) -> int:
    """The port of a bound socket."""
    return int(held.getsockname()[1])


def let_go(held: Iterable[socket.socket]) -> None:
    """Give ports back."""
    for one in held:
        one.close()
