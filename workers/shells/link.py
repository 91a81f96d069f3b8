"""One SSH connection whose messages keep their order, made for several threads at once.

Two gaps of the library are closed here:
- its channels send DATA and EOF outside their lock, so either can come after the CLOSE with which the reader thread
  answers a command that ended early; servers end the whole connection then. `ordered` holds both locks while it sends.
- it forgets how a command was killed (`exit-signal`), which then looks like a lost connection.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

import paramiko
from paramiko.common import (
    MSG_CHANNEL_FAILURE,
    MSG_CHANNEL_REQUEST,
    cMSG_CHANNEL_DATA,
    cMSG_CHANNEL_EOF,
    cMSG_CHANNEL_REQUEST,
    cMSG_CHANNEL_WINDOW_ADJUST,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workers.shells.sockets import TunedSocket

# Source: FACTS-ssh.md, algorithms that paramiko 5.1 still offers last
WEAK = {
    "macs": ["hmac-sha1", "hmac-md5", "hmac-sha1-96", "hmac-md5-96"],
    "ciphers": ["aes128-cbc", "aes192-cbc", "aes256-cbc", "3des-cbc"],
}
# room for the header of a DATA message within the peer's largest packet
HEADER_BYTES = 64

# its errors reach the caller as ours; printed here as well they would be said twice
logging.getLogger("paramiko").setLevel(logging.CRITICAL)


class NotSent(EOFError):
    """The connection is gone, and nothing of the message has left."""


class NotSentInTime(TimeoutError):
    """Time was over before anything of the message left."""


@dataclass(slots=True)
class Notes:
    """What the reader thread heard about one channel and the library does not keep."""

    refused: bool = False
    signal: str = ""


class Link(paramiko.Transport):
    """A client connection. Every channel that is opened on it must end in `channel.close()`."""

    def __init__(self, sock: TunedSocket) -> None:
        super().__init__(sock, disabled_algorithms=WEAK)
        self.tuned = sock
        self.notes: dict[int, Notes] = {}
        # kept by the pool, under its lock
        self.users = 0
        self.retired = False

    def abandon(self) -> None:
        """Close this process's copy of the socket without a word; for the child of a fork."""
        self.active = False
        self.tuned.close()

    @contextmanager
    def writing(self, until: float) -> Iterator[None]:
        """Bound the writes of this thread by `until`, monotonic seconds."""
        self.tuned.limits.until = until
        try:
            yield
        finally:
            self.tuned.limits.until = None

    def ordered(self, channel: paramiko.Channel, make: Callable[[], paramiko.Message | None], *, until: float) -> bool:
        """Send the message that `make` gives, so that it cannot come after a CLOSE. False: closed, or nothing to send.

        Raises: NotSentInTime when a key exchange lasts beyond `until`, NotSent when the connection is gone: nothing of
        the message has left; TimeoutError, EOFError, OSError when it may have.
        """
        while self.active:
            if not self.clear_to_send.wait(min(0.1, max(0.0, until - monotonic()))) and monotonic() >= until:
                raise NotSentInTime("a key exchange did not end")
            with self.clear_to_send_lock:
                if not self.clear_to_send.is_set():
                    continue
                with channel.lock:
                    message = None if channel.closed else make()
                    if message is None:
                        return False
                    with self.writing(until):
                        self._send_message(message)  # type: ignore[attr-defined]  # not in the stubs
                    return True
        raise NotSent

    def request_exec(self, channel: paramiko.Channel, command: str, *, until: float) -> bool:
        """Ask for a command without waiting: `channel.event` is set when the host answers. False: already closed."""
        self.notes[channel.chanid] = Notes()
        channel.event.clear()
        channel.event_ready = False

        def make() -> paramiko.Message:
            message = _message(cMSG_CHANNEL_REQUEST, channel)
            message.add_string("exec")
            message.add_boolean(True)
            message.add_string(command)
            return message

        return self.ordered(channel, make, until=until)

    def send_data(self, channel: paramiko.Channel, data: memoryview, *, until: float) -> int:
        """Send as much of `data` as the peer's window takes now; gives the number of bytes."""
        sent = 0

        def make() -> paramiko.Message | None:
            nonlocal sent
            sent = min(len(data), channel.out_window_size, channel.out_max_packet_size - HEADER_BYTES)
            if sent <= 0 or channel.eof_sent:
                sent = 0
                return None
            channel.out_window_size -= sent
            message = _message(cMSG_CHANNEL_DATA, channel)
            message.add_string(bytes(data[:sent]))
            return message

        return sent if self.ordered(channel, make, until=until) else 0

    def send_eof(self, channel: paramiko.Channel, *, until: float) -> None:
        """Say that no more input comes."""

        def make() -> paramiko.Message | None:
            if channel.eof_sent:
                return None
            channel.eof_sent = True
            return _message(cMSG_CHANNEL_EOF, channel)

        self.ordered(channel, make, until=until)

    def give_window(self, channel: paramiko.Channel, count: int, *, until: float) -> None:
        """Let the peer send `count` bytes more."""

        def make() -> paramiko.Message | None:
            if channel.eof_received:
                return None
            message = _message(cMSG_CHANNEL_WINDOW_ADJUST, channel)
            message.add_int(count)
            return message

        self.ordered(channel, make, until=until)


class Bell(threading.Event):
    """Rung by two buffers for one reader. The buffers clear it whenever they are empty; only the reader may."""

    def clear(self) -> None:
        """Do nothing: the other buffer may have rung."""

    def reset(self) -> None:
        """Forget the ringing so far; for the reader, before it looks."""
        super().clear()


def _message(kind: bytes, channel: paramiko.Channel) -> paramiko.Message:
    message = paramiko.Message()
    message.add_byte(kind)
    message.add_int(channel.remote_chanid)
    return message


def _note_refusal(channel: paramiko.Channel, message: paramiko.Message) -> None:
    """The host said no to the exec request; afterwards this looks like any closed channel."""
    link = channel.transport
    if isinstance(link, Link) and channel.chanid in link.notes:
        link.notes[channel.chanid].refused = True
    _HANDLERS[MSG_CHANNEL_FAILURE](channel, message)


def _note_signal(channel: paramiko.Channel, message: paramiko.Message) -> None:
    """Keep the name of the signal that ended the command."""
    link = channel.transport
    if message.get_text() == "exit-signal" and isinstance(link, Link) and channel.chanid in link.notes:
        message.get_boolean()
        link.notes[channel.chanid].signal = message.get_text()
    message.rewind()
    message.get_int()  # the channel number, read before a handler is called
    _HANDLERS[MSG_CHANNEL_REQUEST](channel, message)


_HANDLERS: dict[int, Callable[[Any, Any], None]] = dict(paramiko.Transport._channel_handler_table)  # type: ignore[attr-defined]  # noqa: SLF001  # the library has no other way to see these messages
Link._channel_handler_table = {  # type: ignore[attr-defined]  # noqa: SLF001  # as above, for our own class
    **_HANDLERS,
    MSG_CHANNEL_FAILURE: _note_refusal,
    MSG_CHANNEL_REQUEST: _note_signal,
}
