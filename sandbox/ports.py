"""Ports of the loopback that are taken before their server listens, so that nobody else is given them by chance."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence

TRIES = 50


def hold_port(address: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """A socket bound to a free port of a loopback address that does not listen.

    The kernel gives such a port to nobody who asks for any port, refuses connections to it, and lets a server bind it
    that sets SO_REUSEADDR, as often as it restarts. Close the socket when the port is no longer needed.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind((address, port))
    except OSError:
        held.close()
        raise
    return held


def hold_everywhere(addresses: Sequence[str]) -> list[socket.socket]:
    """One port held on each of several addresses.

    Raises: OSError when no port was free on all of them in several tries.
    """
    problem: OSError | None = None
    for _ in range(TRIES):
        held = [hold_port(addresses[0])]
        try:
            held += [hold_port(address, number(held[0])) for address in addresses[1:]]
        except OSError as error:
            let_go(held)
            problem = error
            continue
        return held
    raise OSError(f"no port is free on each of {', '.join(addresses)}") from problem


def number(held: socket.socket) -> int:
    """The port of a bound socket."""
    return int(held.getsockname()[1])


def let_go(held: Iterable[socket.socket]) -> None:
    """Give ports back."""
    for one in held:
        one.close()
