"""Ports for servers that a test starts later, or never."""

from __future__ import annotations

import socket

from sandbox.ports import hold_port, number

HELD: list[socket.socket] = []  # until this process ends: a test beside this one is never given the same port


def free_port() -> int:
    """A port of the loopback that nobody listens on, and that only a server which is told its number will bind."""
    held = hold_port()
    HELD.append(held)
    return number(held)
