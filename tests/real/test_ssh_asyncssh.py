"""The SSH pool against a server by other people, which can misbehave as asked."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from policies.errors import HostAnswerLost, HostUnreachable
from tests.real.ssh_servers import AsyncSsh
from workers.shells import Done
from workers.shells.hostkeys import KnownHosts
from workers.shells.ssh import SshPool

pytestmark = pytest.mark.real

MIB = 1 << 20
WAIT_S = 30.0


@contextmanager
def served(folder: Path, serve: Callable[[Any], Awaitable[None]], **options: Any) -> Iterator[tuple[AsyncSsh, SshPool]]:
    """A server that answers each command with `serve`, and a pool for it."""
    server = AsyncSsh(folder, serve, **options).start()
    pool = SshPool((server.key,), known_hosts=KnownHosts(()))
    try:
        yield server, pool
    finally:
        pool.close()
        server.stop()


def run(server: AsyncSsh, pool: SshPool, *argv: str, stdin: bytes = b"", deadline_s: float = WAIT_S) -> Done:
    return pool.run(server.host(), argv, stdin=stdin, deadline_s=deadline_s, max_output_bytes=8 * MIB)


async def echo(process: Any) -> None:
    """Writes 3 MB to stderr, then the command and its input to stdout."""
    process.stderr.write(b"e" * 3_000_000)
    process.stdout.write(process.command.encode() + b"\n" + await process.stdin.read())
    process.exit(3)


def test_command_input_outputs_and_status_pass(tmp_path: Path) -> None:
    with served(tmp_path, echo) as (server, pool):
        done = run(server, pool, "a b", "c", stdin=b"in" * MIB)
    assert (done.exit_status, done.stdout, len(done.stderr)) == (3, b"'a b' c\n" + b"in" * MIB, 3_000_000)


def test_a_signal_is_an_answer(tmp_path: Path) -> None:
    async def killed(process: Any) -> None:
        process.exit_with_signal("TERM")

    with served(tmp_path, killed) as (server, pool):
        done = run(server, pool, "x")
    assert (done.exit_status, done.signal) == (143, "TERM")


def test_an_end_without_a_status_is_an_answer_lost(tmp_path: Path) -> None:
    async def silent(process: Any) -> None:
        process.stdout.write(b"half")
        process.close()

    with (
        served(tmp_path, silent) as (server, pool),
        pytest.raises(HostAnswerLost, match="without an exit status"),
    ):
        run(server, pool, "x")


def test_a_connection_dropped_after_the_command_is_an_answer_lost(tmp_path: Path) -> None:
    async def drop(process: Any) -> None:
        process.get_extra_info("connection").abort()

    with served(tmp_path, drop) as (server, pool), pytest.raises(HostAnswerLost, match="was sent"):
        run(server, pool, "x")


def test_connections_dropped_before_the_command_are_met_anew(tmp_path: Path) -> None:
    with served(tmp_path, echo) as (server, pool):
        assert pool.warm([server.host()]) == {}
        server.drop()
        assert run(server, pool, "x").exit_status == 3


def test_a_host_that_refuses_to_run_commands_did_nothing(tmp_path: Path) -> None:
    class Session(asyncssh.SSHServerSession):  # type: ignore[misc]  # asyncssh is not followed by mypy
        def exec_requested(self, command: str) -> bool:
            return False

    with (
        served(tmp_path, echo, session=Session) as (server, pool),
        pytest.raises(HostUnreachable, match="refused to run a command, nothing was done"),
    ):
        run(server, pool, "x", stdin=b"y" * 100_000)


def test_many_threads_share_one_connection_and_every_answer_is_their_own(tmp_path: Path) -> None:
    async def answer(process: Any) -> None:
        process.stdout.write(await process.stdin.read())
        process.exit(0)

    wrong: list[object] = []

    def work(server: AsyncSsh, pool: SshPool, number: int) -> None:
        for turn in range(100):
            text = b"%d-%d" % (number, turn) * 1000
            try:
                done = run(server, pool, "x", stdin=text)
                if done.stdout != text:
                    wrong.append(done)
            except Exception as error:  # noqa: BLE001 - handed to the test
                wrong.append(error)

    with served(tmp_path, answer) as (server, pool):
        threads = [threading.Thread(target=work, args=(server, pool, number)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert wrong == []
        assert len(server.connections) == 1


def test_commands_beyond_five_wait_for_their_turn(tmp_path: Path) -> None:
    open_now, most = 0, 0

    async def slow(process: Any) -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0.1)
        open_now -= 1
        process.exit(0)

    with served(tmp_path, slow) as (server, pool):
        threads = [threading.Thread(target=run, args=(server, pool, "x")) for _ in range(15)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
    assert 0 < most <= 5


def test_a_host_with_five_commands_that_do_not_end_is_unreachable_for_the_sixth(tmp_path: Path) -> None:
    running: list[Any] = []
    over = threading.Event()

    async def stuck(process: Any) -> None:
        await process.stdin.read()
        running.append(process)
        while not over.is_set():
            await asyncio.sleep(0.02)
        process.exit(0)

    with served(tmp_path, stuck) as (server, pool):
        threads = [threading.Thread(target=run, args=(server, pool, "x")) for _ in range(5)]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + WAIT_S
        while len(running) < 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        with pytest.raises(HostUnreachable, match="5 commands already run"):
            run(server, pool, "x", deadline_s=0.3)
        over.set()
        for thread in threads:
            thread.join(WAIT_S)
