"""Who has a port is asked of an address: two replicas on one machine are two services."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

HELPER = Path(__file__).resolve().parents[2] / "workers" / "hosthelper.py"


@pytest.fixture(scope="module")
def scope() -> dict[str, Any]:
    found: dict[str, Any] = {"__name__": "helper"}
    exec(HELPER.read_text(encoding="utf-8"), found)  # noqa: S102 - the program itself, as hosts run it
    return found


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as open_sockets:
        yield open_sockets


def listener(stack: ExitStack, address: str, port: int = 0, *, only_six: bool = False) -> tuple[int, str]:
    """A listening socket: its port and its inode."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    server = stack.enter_context(socket.socket(family))
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # else a special and a general one cannot be together
    if family == socket.AF_INET6:
        server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(only_six))
    server.bind((address, port))
    server.listen()
    return server.getsockname()[1], str(os.fstat(server.fileno()).st_ino)


def test_two_addresses_of_a_machine_are_two_owners(scope: dict[str, Any], stack: ExitStack) -> None:
    port, second = listener(stack, "127.0.0.2")
    _, third = listener(stack, "127.0.0.3", port)
    assert scope["listening"](port, "127.0.0.2") == {second}
    assert scope["listening"](port, "127.0.0.3") == {third}
    assert scope["listening"](port, "127.0.0.4") == set()
    mine, nobody = scope["port_owner"](port, "127.0.0.3", [os.getpid()], ()), scope["port_owner"](port, "::1", [], ())
    assert (mine["state"], mine["in_unit"], mine["pid"]) == ("owned", True, os.getpid())
    assert (nobody["state"], nobody["pid"]) == ("free", None)


def test_who_listens_on_every_address_has_each_of_them(scope: dict[str, Any], stack: ExitStack) -> None:
    port, everywhere = listener(stack, "0.0.0.0")
    for address in ("127.0.0.2", "127.0.0.3", "192.0.2.11"):
        assert scope["listening"](port, address) == {everywhere}
    assert scope["listening"](port, "::1") == set()  # no connection to an IPv6 address comes there


def test_the_very_address_wins_over_every_address(scope: dict[str, Any], stack: ExitStack) -> None:
    port, own = listener(stack, "127.0.0.2")
    _, everywhere = listener(stack, "::", port)  # of both families
    assert scope["listening"](port, "127.0.0.2") == {own}
    assert scope["listening"](port, "127.0.0.3") == {everywhere}
    assert scope["listening"](port, "::1") == {everywhere}


def test_an_ipv6_address_is_told_from_another_one(scope: dict[str, Any], stack: ExitStack) -> None:
    port, own = listener(stack, "::1", only_six=True)
    assert scope["listening"](port, "::1") == {own}
    assert scope["listening"](port, "2001:db8::2") == set()
    assert scope["listening"](port, "127.0.0.2") == set()
