"""Commands over SSH: one warm connection per host, shared by the threads of one process.

Source: FACTS-ssh.md, measured: sockets, limits of sshd, and how connections are lost.
"""

from __future__ import annotations

import os
import shlex
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from secrets import SystemRandom
from time import monotonic, sleep

import paramiko

from policies.errors import HostUnreachable, OpsError
from policies.fleet import Host
from workers.shells import Done, NoRoom, Session
from workers.shells.connect import Login, connect, load_login
from workers.shells.exchange import Exchange
from workers.shells.fork import must_be_own
from workers.shells.hostkeys import KnownHosts
from workers.shells.kept import Kept, Program
from workers.shells.link import Link
from workers.shells.session import LinkSession
from workers.shells.vendor import FAILURES, unreachable

# sshd's MaxSessions is 10, and a session that was just closed still counts for a moment
MAX_CHANNELS = 5
# Units: seconds. A healthy host opens a channel in one round trip; one that does not is given up and met anew.
OPEN_S = 5.0
# Units: seconds. How long a host at its MaxSessions is asked again.
BUSY_S = 10.0
WARM_THREADS = 20

_random = SystemRandom()


@dataclass(slots=True)
class _Peer:
    """What the pool keeps for one login on one host."""

    slots: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(MAX_CHANNELS))
    lock: threading.Lock = field(default_factory=threading.Lock)  # held for a moment only
    connecting: threading.Lock = field(default_factory=threading.Lock)
    link: Link | None = None


class SshPool:
    """A `Shell` over SSH. One per process: after a fork the child must make its own.

    `keys` are private key files; `agent` also offers the keys of the ssh agent; `reach_s` bounds making a connection.
    """

    def __init__(
        self,
        keys: Sequence[Path] = (),
        *,
        agent: bool = False,
        known_hosts: KnownHosts | None = None,
        reach_s: float = 15.0,
    ) -> None:
        self._login: Login = load_login(keys, agent=agent)
        self._known = known_hosts or KnownHosts()
        self._reach_s = reach_s
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._peers: dict[tuple[str, int, str, str | None], _Peer] = {}
        self._links: weakref.WeakSet[Link] = weakref.WeakSet()
        self._closed = False
        self._kept = Kept(self._open_program)
        _pools.add(self)

    @property
    def kept(self) -> Kept:
        """Sessions that wait for their next line."""
        return self._kept

    def run(
        self, host: Host, argv: Sequence[str], *, stdin: bytes = b"", deadline_s: float, max_output_bytes: int
    ) -> Done:
        """Run `argv` on `host`; see `Shell.run`."""
        started = monotonic()
        until = started + deadline_s
        peer = self._peer(host)
        if not peer.slots.acquire(blocking=False):
            self._kept.drop(host)  # sessions that only wait take no command its place
            if not peer.slots.acquire(timeout=deadline_s):
                raise HostUnreachable(
                    f"{MAX_CHANNELS} commands already run on host '{host.name}' and none ended within {deadline_s:g} s,"
                    " nothing was done",
                    hint="try again when they have ended",
                )
        try:
            link, channel = self._channel(host, peer, until)
            exchange = Exchange(host, link, channel, until=until, max_output_bytes=max_output_bytes)
            try:
                return exchange.run(shlex.join(argv), stdin)
            finally:
                # a host that let a command run out of time may be frozen: the next command meets it anew
                self._release(peer, link, channel, until, retire=exchange.timed_out)
        finally:
            peer.slots.release()

    def open(self, host: Host, argv: Sequence[str], *, prefix: bytes = b"", deadline_s: float) -> Session:
        """Start `argv` and leave it running; see `Shell.open`."""
        until = monotonic() + deadline_s
        peer = self._peer(host)
        if not peer.slots.acquire(blocking=False):
            raise NoRoom(f"{MAX_CHANNELS} commands already run on host '{host.name}', nothing was done")
        try:
            link, channel = self._channel(host, peer, until, patient=False)
        except BaseException:
            peer.slots.release()
            raise

        def release(retire: bool) -> None:
            try:
                self._release(peer, link, channel, monotonic(), retire=retire)
            finally:
                peer.slots.release()

        session = LinkSession(host, link, channel, release)
        session.start(shlex.join(argv), prefix, until=until)
        return session

    def _open_program(self, host: Host, program: Program, deadline_s: float) -> Session:
        return self.open(host, program.argv, prefix=program.prefix, deadline_s=deadline_s)

    def warm(self, hosts: Sequence[Host]) -> dict[str, OpsError]:
        """Open the connections of `hosts` in parallel; gives the errors by host name."""

        def open_one(host: Host) -> OpsError | None:
            peer = self._peer(host)
            try:
                link = self._take(host, peer, monotonic() + self._reach_s)
            except OpsError as error:
                return error
            self._give_back(peer, link, retire=False)
            return None

        if not hosts:
            return {}
        with ThreadPoolExecutor(min(WARM_THREADS, len(hosts)), thread_name_prefix="ssh-warm") as threads:
            answers = dict(zip([host.name for host in hosts], threads.map(open_one, hosts), strict=True))
        return {name: error for name, error in answers.items() if error is not None}

    def close(self) -> None:
        """End every connection. Commands that still run lose their answer."""
        if os.getpid() != self._pid:
            return
        self._kept.close()
        with self._lock:
            self._closed = True
            links = list(self._links)
            self._peers.clear()
        for link in links:
            link.close()
            link.join(timeout=2.0)

    def _peer(self, host: Host) -> _Peer:
        must_be_own(self._pid, "ssh pool")
        with self._lock:
            if self._closed:
                raise OpsError("this ssh pool is closed", hint="make a new one")
            return self._peers.setdefault((host.address, host.port, host.user, host.host_key), _Peer())

    def _channel(self, host: Host, peer: _Peer, until: float, *, patient: bool = True) -> tuple[Link, paramiko.Channel]:
        """An open channel. Nothing is sent on it yet, so every failure may be met with a new try.

        Raises: HostUnreachable; NoRoom instead of trying again on a host that opens no more, unless `patient`.
        """
        give_up = min(until, monotonic() + BUSY_S)
        fresh = False
        tries = 0
        while True:
            link = self._take(host, peer, until)
            left = until - monotonic()
            try:
                with link.writing(until):
                    return link, link.open_session(timeout=max(0.05, min(OPEN_S, left)))
            except FAILURES as error:
                alive = link.is_active() and not _timed_out(error)
                self._give_back(peer, link, retire=not alive)
                if alive and not patient:
                    raise NoRoom(unreachable(host, error).message) from error
                if alive:
                    self._kept.drop(host)
                tries += 1
                pause_s = _random.uniform(0.01, 0.03) * tries
                refused = isinstance(error, paramiko.ChannelException) and error.code != 2
                if refused or monotonic() + pause_s >= give_up or (fresh and not alive):
                    raise unreachable(host, error) from error
                # not alive: a warm connection may have died unseen, so one new connection is tried.
                # alive: MaxSessions is reached for the moment.
                fresh = not alive
                sleep(pause_s if alive else 0)

    def _take(self, host: Host, peer: _Peer, until: float) -> Link:
        """The warm connection, or a new one; counted as used until it is given back."""
        link = _use(peer)
        if link is not None:
            return link
        if not peer.connecting.acquire(timeout=max(0.0, until - monotonic())):
            raise unreachable(host, TimeoutError("somebody else is still connecting"))
        try:
            link = _use(peer)
            if link is not None:
                return link
            link = connect(host, self._known, self._login, until=min(until, monotonic() + self._reach_s))
            with self._lock:
                self._links.add(link)
                closed = self._closed
            if closed:
                link.close()
                raise OpsError("this ssh pool is closed", hint="make a new one")
            with peer.lock:
                peer.link = link
                link.users += 1
            return link
        finally:
            peer.connecting.release()

    def _give_back(self, peer: _Peer, link: Link, *, retire: bool) -> None:
        """Stop using a connection. A retired one serves nobody new and is closed by its last user."""
        with peer.lock:
            link.users -= 1
            link.retired = link.retired or retire
            if link.retired and peer.link is link:
                peer.link = None
            ends = link.retired and link.users == 0
        if ends:
            link.close()

    def _release(self, peer: _Peer, link: Link, channel: paramiko.Channel, until: float, *, retire: bool) -> None:
        """Close the channel whatever happened: one that is left to the collector costs the connection."""
        try:
            with link.writing(max(until, monotonic() + 1.0)):
                channel.close()
        except FAILURES:
            retire = True  # the peer does not even take the message that closes
        self._give_back(peer, link, retire=retire)


def _use(peer: _Peer) -> Link | None:
    """The warm connection with one user more, None where there is none."""
    with peer.lock:
        if peer.link is None or not peer.link.is_active():
            return None
        peer.link.users += 1
        return peer.link


def _timed_out(error: BaseException) -> bool:
    """Whether a channel was not opened in time; the library has no class of its own for it."""
    return isinstance(error, TimeoutError) or str(error).startswith("Timeout opening channel")


_pools: weakref.WeakSet[SshPool] = weakref.WeakSet()


def _forget_in_child() -> None:
    """Close a child's copies of the sockets without a word: one byte of it would break the parent's connections."""
    for pool in list(_pools):
        for link in list(pool._links):  # noqa: SLF001  # the same module's own class
            link.abandon()


os.register_at_fork(after_in_child=_forget_in_child)
