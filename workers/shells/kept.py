"""Sessions that wait for their next line: a few per host, for one program each, lent to one thread at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

from policies.errors import HostAnswerLost, HostUnreachable, OpsError
from policies.fleet import Host
from workers.shells import NoRoom, Session
from workers.shells.fork import must_be_own

# of the five channels that a host is asked for at most; the rest is for commands on their own
MOST_PER_HOST = 2
# Units: seconds. Long enough for the boot of a service on another host; below the time after which the program on the
# host ends by itself.
KEEP_S = 600.0
# Units: seconds. A session that was not used for so long is greeted first: its host may have frozen meanwhile, and a
# line that was sent there could not be called back.
GREET_AFTER_S = 5.0
GREET_S = 5.0
# Units: seconds, for the first greeting: the program has to start
START_S = 20.0
# Units: seconds. How long a host whose program did not stay is not asked for a session.
PAUSE_S = 30.0


@dataclass(frozen=True, slots=True)
class Program:
    """A command that answers lines. `prefix` is written to it first.

    `greet(session, deadline_s)` asks something that changes nothing, and raises NoRoom when it is not what was meant.
    """

    argv: tuple[str, ...]
    prefix: bytes = field(repr=False)
    greet: Callable[[Session, float], None] = field(compare=False, repr=False)


@dataclass(slots=True)
class _Idle:
    program: Program
    session: Session
    since: float


@dataclass(slots=True)
class _Shelf:
    """One host's sessions: those that wait, and the number of all, lent ones and those being opened included."""

    idle: list[_Idle] = field(default_factory=list)
    count: int = 0
    paused_until: float = 0.0


Place = tuple[str, int, str, str | None]
Opener = Callable[[Host, Program, float], Session]


class Kept:
    """The sessions of one shell. `open_one` starts a program and bounds that by seconds."""

    def __init__(self, open_one: Opener, *, most: int = MOST_PER_HOST, keep_s: float = KEEP_S) -> None:
        self._open = open_one
        self._most, self._keep_s = most, keep_s
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._shelves: dict[Place, _Shelf] = {}
        self._closed = False

    def take(self, host: Host, program: Program, *, deadline_s: float) -> Session:
        """A session that answered its greeting a moment ago, or was used a moment ago. It has to be given back.

        Raises: NoRoom when a command on its own has to do; HostUnreachable; OpsError of the greeting.
        """
        must_be_own(self._pid, "session")
        until = monotonic() + deadline_s
        while True:
            with self._lock:
                shelf = self._shelf(host)
                gone = self._late(shelf)
                found = next((idle for idle in reversed(shelf.idle) if idle.program == program), None)
                room = found is None and self._reserve(shelf, gone)
                if found is not None:
                    shelf.idle.remove(found)
            for idle in gone:
                idle.session.close()
            if room:
                return self._start(host, program, until)
            if found is None:
                raise NoRoom(f"host '{host.name}' has as many sessions as it may have, nothing was done")
            if self._still_good(host, found, until):
                return found.session
            self.drop(host)  # what broke or froze one has met the others as well

    def give_back(self, host: Host, program: Program, session: Session) -> None:
        """Keep it for the next caller, unless it ended."""
        with self._lock:
            keep = session.alive and not self._closed
            if keep:
                self._shelf(host).idle.append(_Idle(program, session, monotonic()))
        if not keep:
            self._lost_one(host, session)

    def drop(self, host: Host) -> None:
        """Close those of a host that wait: their channels are needed."""
        with self._lock:
            shelf = self._shelf(host)
            gone, shelf.idle = shelf.idle, []
            shelf.count -= len(gone)
        for idle in gone:
            idle.session.close()

    def close(self) -> None:
        """Close all that wait; those that are lent are closed when they are given back."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            self._closed = True
            gone = [idle for shelf in self._shelves.values() for idle in shelf.idle]
            for shelf in self._shelves.values():
                shelf.count -= len(shelf.idle)
                shelf.idle = []
        for idle in gone:
            idle.session.close()

    def _shelf(self, host: Host) -> _Shelf:
        return self._shelves.setdefault((host.address, host.port, host.user, host.host_key), _Shelf())

    def _late(self, shelf: _Shelf) -> list[_Idle]:
        """Take off the shelf what waited too long or has ended."""
        now = monotonic()
        gone = [idle for idle in shelf.idle if now - idle.since >= self._keep_s or not idle.session.alive]
        shelf.idle = [idle for idle in shelf.idle if idle not in gone]
        shelf.count -= len(gone)
        return gone

    def _reserve(self, shelf: _Shelf, gone: list[_Idle]) -> bool:
        """Count a new session, in the place of one of another program where there is no room else."""
        if self._closed:
            raise OpsError("this shell is closed", hint="make a new one")
        if monotonic() < shelf.paused_until:
            return False
        if shelf.count >= self._most:
            if not shelf.idle:
                return False
            gone.append(shelf.idle.pop(0))
            shelf.count -= 1
        shelf.count += 1
        return True

    def _start(self, host: Host, program: Program, until: float) -> Session:
        session: Session | None = None
        try:
            session = self._open(host, program, until - monotonic())
            try:
                program.greet(session, min(START_S, max(0.0, until - monotonic())))
            except (HostAnswerLost, HostUnreachable) as error:
                with self._lock:
                    self._shelf(host).paused_until = monotonic() + PAUSE_S
                raise NoRoom(error.message, hint=error.hint) from error
        except BaseException:
            self._lost_one(host, session)
            raise
        return session

    def _still_good(self, host: Host, found: _Idle, until: float) -> bool:
        """Whether it answers. One that does not is closed."""
        if monotonic() - found.since < GREET_AFTER_S:
            return True
        try:
            found.program.greet(found.session, min(GREET_S, max(0.0, until - monotonic())))
        except BaseException as error:
            self._lost_one(host, found.session)
            if isinstance(error, HostUnreachable | HostAnswerLost):
                return False
            raise
        return True

    def _lost_one(self, host: Host, session: Session | None) -> None:
        with self._lock:
            self._shelf(host).count -= 1
        if session is not None:
            session.close()
