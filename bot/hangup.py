"""Ending a Socket Mode connection, whatever its threads are doing."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Any

from slack_sdk.socket_mode.builtin import SocketModeClient

LOOK_S = 0.05


def hang_up(client: SocketModeClient) -> None:
    """Close the connection and end the client's threads.

    The library's own `close` waits for ever when a session begins in the same moment: its thread then takes back that
    the session is over. And it waits for the three seconds of a read, which ends here with the socket.
    """
    client.closed = True
    client.auto_reconnect_enabled = client.default_auto_reconnect_enabled = False
    runner = client.current_session_runner
    runner.event.set()  # no further session begins
    thread: threading.Thread | None = runner.thread
    while True:
        client.current_session_state.terminated = True
        _shut(client.current_session)
        if thread is None or not thread.is_alive():
            break
        thread.join(LOOK_S)
    client.close()


def _shut(session: Any) -> None:
    sock = getattr(session, "sock", None)
    if sock is not None:
        with suppress(OSError):  # closed meanwhile
            sock.shutdown(socket.SHUT_RDWR)
