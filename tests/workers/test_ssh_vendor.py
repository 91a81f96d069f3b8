"""Every error class of the SSH library has words of ours."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import socket

import paramiko
import pytest

from policies.errors import HostAnswerLost, HostUnreachable
from policies.fleet import Host
from workers.shells.vendor import FAILURES, MEANING, lost, meaning, unreachable

HOST = Host(name="gpu1", address="192.0.2.1", user="ops")


def vendor_errors() -> list[type[BaseException]]:
    """Exception classes that paramiko defines, in any module that this system can load."""
    found: set[type[BaseException]] = set()
    for module in pkgutil.iter_modules(paramiko.__path__):
        if module.name in ("_winapi", "win_pageant", "win_openssh"):
            continue
        loaded = importlib.import_module(f"paramiko.{module.name}")
        found |= {
            item
            for item in vars(loaded).values()
            if inspect.isclass(item) and issubclass(item, BaseException) and item.__module__.startswith("paramiko")
        }
    return sorted(found, key=lambda item: item.__name__)


def test_the_library_still_defines_the_errors_that_we_look_for() -> None:
    names = {error.__name__ for error in vendor_errors()}
    assert {"SSHException", "ChannelException", "BadHostKeyException", "PipeTimeout", "SFTPError"} <= names


@pytest.mark.parametrize("error", vendor_errors(), ids=lambda error: error.__name__)
def test_an_error_of_the_library_is_mapped(error: type[BaseException]) -> None:
    assert error in MEANING, f"{error.__name__} has no entry in workers.shells.vendor.MEANING"
    assert issubclass(error, FAILURES), f"{error.__name__} would pass our handlers"


@pytest.mark.parametrize(
    "error", [socket.gaierror, ConnectionRefusedError, ConnectionResetError, TimeoutError, EOFError]
)
def test_an_error_of_the_network_is_mapped(error: type[BaseException]) -> None:
    assert error in MEANING
    assert issubclass(error, FAILURES)


def test_the_nearest_class_gives_the_words() -> None:
    class NewKind(paramiko.ChannelException):
        """As a later version might have it."""

    assert meaning(NewKind(2, "busy"))[0].startswith("the host opened no session")
    assert meaning(ConnectionAbortedError("gone"))[0] == "the network failed: gone"


def test_which_error_is_raised_depends_on_whether_the_command_was_sent() -> None:
    before, after = unreachable(HOST, EOFError()), lost(HOST, EOFError())
    assert isinstance(before, HostUnreachable)
    assert "nothing was done" in before.message
    assert isinstance(after, HostAnswerLost)
    assert "was sent" in after.message
    assert "ops@192.0.2.1:22" in before.message
