"""Sessions over asyncssh, OpenSSH and on this machine: what is sent once, what an end means, who may hold a channel."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from policies.errors import HostAnswerLost, HostUnreachable, OpsError
from policies.fleet import Host
from tests.real.ssh_servers import AsyncSsh, Sshd
from workers.shells import NoRoom, Session, Shell
from workers.shells.hostkeys import KnownHosts
from workers.shells.local import LocalShell
from workers.shells.ssh import MAX_CHANNELS, SshPool

pytestmark = pytest.mark.real
WAIT_S = 30.0
MIB = 1 << 20
HERE = Host(name="here", address="localhost", user="me")

# answers a line with its pid and the line; some lines ask for something else
ECHO = """
import os, sys, time
for line in sys.stdin:
    line = line.rstrip('\\n')
    if line.startswith('die'):
        print('last words', file=sys.stderr, flush=True); os._exit(7)
    if line == 'kill': os.kill(os.getpid(), 9)
    if line == 'sleep': time.sleep(60)
    if line == 'chatter': print('one'); print('two', flush=True); continue
    if line == 'shout': sys.stderr.write('e' * 3_000_000); sys.stderr.flush()
    if line == 'long': line = 'x' * 3_000_000
    if line == 'half': sys.stdout.write('ha'); sys.stdout.flush(); os._exit(0)
    print(os.getpid(), line, flush=True)
"""
ARGV = (sys.executable, "-I", "-c", ECHO)


class Place:
    """A shell, and a host that it reaches."""

    def __init__(self, shell: Shell, host: Host) -> None:
        self.shell, self.host = shell, host

    def open(self, *argv: str, prefix: bytes = b"") -> Session:
        return self.shell.open(self.host, argv or ARGV, prefix=prefix, deadline_s=WAIT_S)

    @contextmanager
    def session(self, *argv: str) -> Iterator[Session]:
        session = self.open(*argv)
        try:
            yield session
        finally:
            session.close()


@contextmanager
def openssh(folder: Path, *options: str) -> Iterator[tuple[Sshd, Place]]:
    server = Sshd(folder, options=options).start()
    pool = SshPool((server.key,), known_hosts=KnownHosts(()))
    try:
        yield server, Place(pool, server.host())
    finally:
        pool.close()
        server.stop()


async def echo(process: Any) -> None:
    """The same program, in a server by other people."""
    pid = 4_000_000
    text = b""
    async for piece in process.stdin:
        text += piece
        if not piece.endswith(b"\n"):
            continue  # the server's own limit for a line
        answered, text = text.rstrip(b"\n"), b""
        if not await echo_line(process, pid, answered):
            return
    process.exit(0)


async def echo_line(process: Any, pid: int, text: bytes) -> bool:
    """One answer. False: the process ended."""
    if text == b"kill":
        process.exit_with_signal("KILL")
        return False
    if text in (b"die", b"half"):
        process.stderr.write(b"last words\n")
        process.stdout.write(b"ha" if text == b"half" else b"")
        process.exit(7)
        return False
    if text == b"sleep":
        await asyncio.sleep(60)
    if text == b"shout":
        process.stderr.write(b"e" * 3_000_000)
    text = b"x" * 3_000_000 if text == b"long" else text
    process.stdout.write(b"one\ntwo\n" if text == b"chatter" else b"%d %b\n" % (pid, text))
    return True


@contextmanager
def asyncssh_place(folder: Path) -> Iterator[tuple[AsyncSsh, Place]]:
    server = AsyncSsh(folder, echo).start()
    pool = SshPool((server.key,), known_hosts=KnownHosts(()))
    try:
        yield server, Place(pool, server.host())
    finally:
        pool.close()
        server.stop()


@pytest.fixture(params=["asyncssh", "openssh", "local"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "local":
        shell = LocalShell()
        yield Place(shell, HERE)
        shell.close()
    elif request.param == "openssh":
        with openssh(tmp_path) as (_, found):
            yield found
    else:
        with asyncssh_place(tmp_path) as (_, found):
            yield found


def call(session: Session, line: str, *, deadline_s: float = WAIT_S, cap: int = 8 * MIB) -> bytes:
    return session.call(line.encode(), deadline_s=deadline_s, max_output_bytes=cap)


def pid_of(session: Session) -> int:
    return int(call(session, "pid?").split()[0])


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def gone(pid: int) -> bool:
    """No such process, or one that only waits to be buried by its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_thousand_lines_are_answered_by_one_process(place: Place) -> None:
    with place.session() as session:
        pid = pid_of(session)
        for number in range(1000):
            assert call(session, f"line {number}") == b"%d line %d" % (pid, number)


def test_a_long_line_and_a_long_answer_pass(place: Place) -> None:
    with place.session() as session:
        line = "y" * 3_000_000
        assert call(session, line).endswith(line.encode())
        assert call(session, "long").endswith(b"x" * 3_000_000)


def test_three_megabytes_on_stderr_before_the_answer_do_not_block(place: Place) -> None:
    with place.session() as session:
        assert call(session, "shout").endswith(b" shout")
        assert call(session, "x").endswith(b" x")


def test_a_program_that_ends_during_a_call_is_an_answer_lost_with_its_last_words(place: Place) -> None:
    with place.session() as session:
        with pytest.raises(HostAnswerLost, match=r"ended with status 7: last words"):
            call(session, "die")
        assert not session.alive
        with pytest.raises(HostUnreachable, match="nothing was done: the session is closed"):
            call(session, "x")


def test_a_program_that_is_killed_during_a_call_is_an_answer_lost(place: Place) -> None:
    with place.session() as session, pytest.raises(HostAnswerLost, match="was sent"):
        call(session, "kill")


def test_half_a_line_is_no_answer(place: Place) -> None:
    with place.session() as session, pytest.raises(HostAnswerLost):
        call(session, "half")


def test_an_answer_that_is_too_long_is_never_read_in_part(place: Place) -> None:
    with place.session() as session:
        with pytest.raises(HostAnswerLost, match="longer than 1000 bytes"):
            call(session, "long", cap=1000)
        assert not session.alive


def test_a_call_beyond_its_deadline_is_an_answer_lost_and_the_end_of_the_session(place: Place) -> None:
    with place.session() as session:
        with pytest.raises(HostAnswerLost, match="no answer within"):
            call(session, "sleep", deadline_s=0.5)
        assert not session.alive
    with place.session() as session:
        assert call(session, "x").endswith(b" x")


def test_words_that_nobody_asked_for_end_the_session_before_anything_is_sent(place: Place) -> None:
    with place.session() as session:
        assert call(session, "chatter") == b"one"
        with pytest.raises(HostUnreachable, match="without being asked"):
            call(session, "x")


def test_a_session_that_is_closed_twice_is_closed(place: Place) -> None:
    session = place.open()
    call(session, "x")
    session.close()
    session.close()
    assert not session.alive


def test_sessions_do_not_meet(place: Place) -> None:
    wrong: list[object] = []

    def work(session: Session, number: int) -> None:
        for turn in range(200):
            try:
                answer = call(session, f"{number}-{turn}")
                if not answer.endswith(f" {number}-{turn}".encode()):
                    wrong.append(answer)
            except Exception as error:  # noqa: BLE001 - handed to the test
                wrong.append(error)

    sessions = [place.open() for _ in range(3)]
    threads = [threading.Thread(target=work, args=(session, number)) for number, session in enumerate(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    for session in sessions:
        session.close()
    assert wrong == []


def test_a_program_that_is_not_there_is_known_from_the_first_call(tmp_path: Path) -> None:
    with openssh(tmp_path) as (_, place), place.session("/nonexistent/program") as session:
        until(lambda: not session.alive)
        with pytest.raises(HostUnreachable, match=r"ended with status 127: .*not found"):
            call(session, "x")
    with pytest.raises(HostUnreachable, match="nothing was done"):
        LocalShell().open(HERE, ("/nonexistent/program",), deadline_s=WAIT_S)


@pytest.mark.parametrize("kind", ["openssh", "local"])
def test_a_program_that_is_killed_between_calls_means_that_nothing_was_done(tmp_path: Path, kind: str) -> None:
    with openssh(tmp_path) as (_, there):
        place = there if kind == "openssh" else Place(LocalShell(), HERE)
        with place.session() as session:
            os.kill(pid_of(session), signal.SIGKILL)
            until(lambda: not session.alive)
            with pytest.raises(HostUnreachable, match="nothing was done"):
                call(session, "x")


@pytest.mark.parametrize("kind", ["openssh", "local"])
@pytest.mark.parametrize("way", ["close", "deadline"])
def test_no_process_is_left_when_a_session_ends(tmp_path: Path, kind: str, way: str) -> None:
    # the program reads stdin and ends with it, as the host helper does
    quick = ECHO.replace("time.sleep(60)", "sys.stdin.readline(); os._exit(0)")
    with openssh(tmp_path) as (_, there):
        place = there if kind == "openssh" else Place(LocalShell(), HERE)
        session = place.open(sys.executable, "-I", "-c", quick)
        pid = pid_of(session)
        assert not gone(pid)
        if way == "deadline":
            with pytest.raises(HostAnswerLost):
                call(session, "sleep", deadline_s=0.5)
        session.close()
        until(lambda: gone(pid))


def test_a_connection_that_is_cut_between_calls_means_that_nothing_was_done(tmp_path: Path) -> None:
    with openssh(tmp_path) as (server, place), place.session() as session:
        pid = pid_of(session)
        server.signal(signal.SIGKILL)
        until(lambda: not session.alive)
        with pytest.raises(HostUnreachable, match="nothing was done"):
            call(session, "x")
        until(lambda: gone(pid))


def test_a_connection_that_is_cut_during_a_call_is_an_answer_lost(tmp_path: Path) -> None:
    with openssh(tmp_path) as (server, place), place.session() as session:
        pid_of(session)
        threading.Timer(0.5, server.signal, (signal.SIGKILL,)).start()
        with pytest.raises(HostAnswerLost, match="was sent"):
            call(session, "sleep")


def test_a_host_that_freezes_during_a_call_is_left_at_the_deadline_and_met_anew(tmp_path: Path) -> None:
    with openssh(tmp_path) as (server, place):
        session = place.open()
        pid_of(session)
        server.signal(signal.SIGSTOP)
        with pytest.raises(HostAnswerLost, match="no answer within"):
            call(session, "x", deadline_s=1.0)
        with place.session() as again:
            assert call(again, "x").endswith(b" x")


def test_a_session_takes_one_of_the_five_places_of_a_host_and_gives_it_back(tmp_path: Path) -> None:
    with openssh(tmp_path) as (_, place):
        sessions = [place.open() for _ in range(MAX_CHANNELS)]
        with pytest.raises(NoRoom):
            place.open()
        sessions.pop().close()
        assert place.shell.run(place.host, ("true",), deadline_s=WAIT_S, max_output_bytes=100).exit_status == 0
        for session in sessions:
            session.close()
        with suppress(NoRoom):
            place.open().close()


def test_a_host_that_opens_no_further_channel_says_so_at_once(tmp_path: Path) -> None:
    with openssh(tmp_path, "MaxSessions 1") as (_, place), place.session() as session:
        pid_of(session)
        with pytest.raises(NoRoom):
            place.open()
        assert call(session, "x").endswith(b" x")


def test_a_session_is_refused_in_a_child_of_a_fork_and_goes_on_in_the_parent(place: Place) -> None:
    with place.session() as session:
        call(session, "x")
        pid = os.fork()
        if pid == 0:
            try:
                call(session, "y")
            except OpsError as error:
                session.close()
                os._exit(0 if "fork" in error.hint else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert call(session, "z").endswith(b" z")
