"""The SSH pool against OpenSSH's own server."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from policies.errors import HostAnswerLost, HostKeyRefused, HostUnreachable, OpsError, SettingsError
from policies.fleet import Host
from tests.ports import free_port
from tests.real.ssh_servers import Sshd, make_key
from workers.shells import Done
from workers.shells.hostkeys import KnownHosts
from workers.shells.ssh import SshPool

pytestmark = pytest.mark.real

MIB = 1 << 20
WAIT_S = 30.0


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    server = Sshd(tmp_path_factory.mktemp("sshd")).start()
    yield server
    server.stop()


@pytest.fixture
def pool(sshd: Sshd) -> Iterator[SshPool]:
    found = SshPool((sshd.key,), known_hosts=KnownHosts(()))
    yield found
    found.close()


def run(
    pool: SshPool, host: Host, *argv: str, stdin: bytes = b"", deadline_s: float = WAIT_S, cap: int = 8 * MIB
) -> Done:
    return pool.run(host, argv, stdin=stdin, deadline_s=deadline_s, max_output_bytes=cap)


def python(pool: SshPool, host: Host, code: str, **options: object) -> Done:
    return run(pool, host, "/usr/bin/python3", "-I", "-c", code, **options)  # type: ignore[arg-type]  # options of run


def until(what: object) -> None:
    """Wait until a callable is true."""
    assert callable(what)
    end = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def in_background(work: object) -> tuple[threading.Thread, list[BaseException | Done]]:
    """Run a callable in a thread; the list gets its answer or its error."""
    assert callable(work)
    answers: list[BaseException | Done] = []

    def body() -> None:
        try:
            answers.append(work())
        except BaseException as error:  # noqa: BLE001 - handed to the test
            answers.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    return thread, answers


def test_arguments_are_quoted_once(sshd: Sshd, pool: SshPool) -> None:
    done = run(pool, sshd.host(), "printf", "%s|", "a b", "$HOME", ";reboot", "it's", "", "*", "\n", "–")
    assert done.stdout == "a b|$HOME|;reboot|it's||*|\n|–|".encode()


def test_status_and_both_outputs_are_given(sshd: Sshd, pool: SshPool) -> None:
    done = run(pool, sshd.host(), "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.exit_status, done.stdout, done.stderr, done.signal) == (7, b"out\n", b"err\n", "")


def test_one_connection_carries_every_command(sshd: Sshd, pool: SshPool) -> None:
    peers = {run(pool, sshd.host(), "sh", "-c", 'echo "$SSH_CONNECTION"').stdout for _ in range(20)}
    assert len(peers) == 1


def test_an_unknown_key_is_refused_and_the_line_in_the_hint_makes_it_known(sshd: Sshd, tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    pool = SshPool((sshd.key,), known_hosts=KnownHosts((file,)))
    host = sshd.host(host_key=None)
    with pytest.raises(HostKeyRefused, match="is not known") as refusal:
        run(pool, host, "true")
    line = next(part for part in refusal.value.hint.split("'") if part.startswith("[127.0.0.1]"))
    file.write_text(line + "\n")
    assert run(pool, host, "true").exit_status == 0
    pool.close()


def test_a_hashed_known_hosts_file_of_ssh_keygen_is_understood(sshd: Sshd, tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"[127.0.0.1]:{sshd.port} {sshd.host_key}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(file)], check=True, capture_output=True)
    assert file.read_text().startswith("|1|")
    pool = SshPool((sshd.key,), known_hosts=KnownHosts((file,)))
    assert run(pool, sshd.host(host_key=None), "true").exit_status == 0
    pool.close()


def test_a_host_that_was_installed_anew_is_refused_with_both_fingerprints(tmp_path: Path) -> None:
    server = Sshd(tmp_path / "sshd").start()
    pool = SshPool((server.key,), known_hosts=KnownHosts(()))
    try:
        host = server.host()
        run(pool, host, "true")
        server.restart_with_new_host_key()
        with pytest.raises(HostKeyRefused, match=r"changed: known is .* SHA256:.*, shown was .* SHA256:"):
            run(pool, host, "true")
    finally:
        pool.close()
        server.stop()


def test_a_host_with_more_key_types_is_asked_for_the_known_one(tmp_path: Path) -> None:
    server = Sshd(tmp_path / "sshd", options=(f"HostKey {tmp_path}/rsa",))
    subprocess.run(["ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", str(tmp_path / "rsa")], check=True)
    server.start()
    pool = SshPool((server.key,), known_hosts=KnownHosts(()))
    try:
        rsa = " ".join((tmp_path / "rsa.pub").read_text().split()[:2])
        assert run(pool, server.host(host_key=rsa), "true").exit_status == 0
    finally:
        pool.close()
        server.stop()


def test_a_login_with_a_foreign_key_is_refused_and_nothing_was_done(sshd: Sshd, tmp_path: Path) -> None:
    make_key(tmp_path / "other")
    pool = SshPool((tmp_path / "other",), known_hosts=KnownHosts(()))
    with pytest.raises(HostUnreachable, match="refused the login of"):
        run(pool, sshd.host(), "true")
    pool.close()


def test_the_second_key_is_offered_when_the_first_is_refused(sshd: Sshd, tmp_path: Path) -> None:
    make_key(tmp_path / "other")
    pool = SshPool((tmp_path / "other", sshd.key), known_hosts=KnownHosts(()))
    assert run(pool, sshd.host(), "true").exit_status == 0
    pool.close()


def test_a_key_file_that_is_missing_broken_or_locked_is_a_settings_error(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("no key")
    locked = tmp_path / "locked"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", str(locked)], check=True)
    for path in (tmp_path / "missing", tmp_path / "broken", locked):
        with pytest.raises(SettingsError, match="cannot be read"):
            SshPool((path,))
    with pytest.raises(SettingsError, match="no way to log in"):
        SshPool(())


def test_the_agent_offers_its_keys(sshd: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(tmp_path / "agent")], stdout=subprocess.DEVNULL)
    try:
        until((tmp_path / "agent").exists)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
        subprocess.run(["ssh-add", "-q", str(sshd.key)], check=True)
        pool = SshPool((), agent=True, known_hosts=KnownHosts(()))
        assert run(pool, sshd.host(), "true").exit_status == 0
        pool.close()
    finally:
        agent.terminate()
        agent.wait(WAIT_S)


def test_nobody_listening_means_that_nothing_was_done(sshd: Sshd, pool: SshPool) -> None:
    with pytest.raises(HostUnreachable, match="nothing was done: nobody listens there"):
        run(pool, sshd.host(port=free_port()), "true")


def test_three_megabytes_on_stderr_before_stdout_do_not_block(sshd: Sshd, pool: SshPool) -> None:
    code = "import sys; sys.stderr.write('e' * 3_000_000); sys.stderr.flush(); print('end')"
    done = python(pool, sshd.host(), code)
    assert (len(done.stderr), done.stdout, done.truncated) == (3_000_000, b"end\n", False)


def test_large_input_is_written_while_output_is_read(sshd: Sshd, pool: SshPool) -> None:
    data = os.urandom(6 * MIB)
    assert run(pool, sshd.host(), "cat", stdin=data).stdout == data


def test_input_that_nobody_reads_costs_neither_answer_nor_connection(sshd: Sshd, pool: SshPool) -> None:
    before = run(pool, sshd.host(), "sh", "-c", 'echo "$SSH_CONNECTION"').stdout
    for _ in range(100):
        assert run(pool, sshd.host(), "true", stdin=b"x" * 300_000).exit_status == 0
    assert run(pool, sshd.host(), "sh", "-c", 'echo "$SSH_CONNECTION"').stdout == before


def test_output_beyond_the_cap_is_cut_and_said_to_be(sshd: Sshd, pool: SshPool) -> None:
    done = python(pool, sshd.host(), "print('a' * 5_000_000)", cap=1000)
    assert (done.stdout, done.truncated, done.exit_status) == (b"a" * 1000, True, 0)


def test_a_killed_command_is_an_answer_with_its_signal(sshd: Sshd, pool: SshPool) -> None:
    done = run(pool, sshd.host(), "sh", "-c", "kill -9 $PPID; sleep 5")
    assert (done.exit_status, done.signal) == (137, "KILL")


def test_a_child_in_the_background_does_not_hold_the_answer(sshd: Sshd, pool: SshPool) -> None:
    done = run(pool, sshd.host(), "sh", "-c", "sleep 60 & echo up")
    assert (done.exit_status, done.stdout) == (0, b"up\n")
    assert done.took_s < WAIT_S  # the deadline; the child lives for 60


def test_a_child_that_talks_in_the_background_is_left_at_the_deadline(sshd: Sshd, pool: SshPool) -> None:
    done = run(pool, sshd.host(), "sh", "-c", "(timeout 20 yes) & echo up", deadline_s=2.0, cap=1000)
    assert (done.exit_status, done.truncated) == (0, True)


def test_a_command_beyond_its_deadline_is_an_answer_lost(sshd: Sshd, pool: SshPool) -> None:
    with pytest.raises(HostAnswerLost, match=r"no end within"):
        run(pool, sshd.host(), "sleep", "60", deadline_s=0.5)
    with pytest.raises(HostAnswerLost):
        run(pool, sshd.host(), "timeout", "20", "yes", deadline_s=0.5, cap=1000)
    assert run(pool, sshd.host(), "true").exit_status == 0


def test_a_connection_that_died_while_idle_is_replaced(tmp_path: Path) -> None:
    server = Sshd(tmp_path / "sshd").start()
    pool = SshPool((server.key,), known_hosts=KnownHosts(()))
    try:
        for _ in range(3):
            assert run(pool, server.host(), "true").exit_status == 0
            server.signal(signal.SIGKILL)
    finally:
        pool.close()
        server.stop()


def test_a_connection_cut_during_a_command_is_an_answer_lost(tmp_path: Path) -> None:
    server = Sshd(tmp_path / "sshd").start()
    pool = SshPool((server.key,), known_hosts=KnownHosts(()))
    mark = tmp_path / "started"
    try:
        thread, answers = in_background(
            lambda: run(pool, server.host(), "sh", "-c", f"touch {shlex.quote(str(mark))}; sleep 60", deadline_s=120)
        )
        until(mark.exists)
        server.signal(signal.SIGKILL)
        thread.join(WAIT_S)
        assert isinstance(answers[0], HostAnswerLost)
        assert "was sent" in answers[0].message
    finally:
        pool.close()
        server.stop()


def test_a_session_that_freezes_during_a_command_is_left_at_the_deadline_and_met_anew(tmp_path: Path) -> None:
    server = Sshd(tmp_path / "sshd").start()
    pool = SshPool((server.key,), known_hosts=KnownHosts(()))
    try:
        run(pool, server.host(), "true")
        mark = tmp_path / "started"
        thread, answers = in_background(
            lambda: run(pool, server.host(), "sh", "-c", f"touch {shlex.quote(str(mark))}; sleep 2", deadline_s=4)
        )
        until(mark.exists)
        server.signal(signal.SIGSTOP)
        thread.join(WAIT_S)
        assert isinstance(answers[0], HostAnswerLost)
        assert run(pool, server.host(), "echo", "again").stdout == b"again\n"
    finally:
        pool.close()
        server.stop()


def test_a_session_that_froze_while_idle_is_replaced_before_anything_is_sent(tmp_path: Path) -> None:
    server = Sshd(tmp_path / "sshd").start()
    pool = SshPool((server.key,), known_hosts=KnownHosts(()))
    try:
        run(pool, server.host(), "true")
        server.signal(signal.SIGSTOP)
        assert run(pool, server.host(), "echo", "again").stdout == b"again\n"
    finally:
        pool.close()
        server.stop()


def test_a_server_that_freezes_while_it_takes_input_is_noticed(tmp_path: Path) -> None:
    server = Sshd(tmp_path / "sshd").start()
    pool = SshPool((server.key,), known_hosts=KnownHosts(()))
    try:
        mark = tmp_path / "started"
        command = f"touch {shlex.quote(str(mark))}; sleep 1; cat >/dev/null"
        thread, answers = in_background(
            lambda: run(pool, server.host(), "sh", "-c", command, stdin=bytes(32 * MIB), deadline_s=5)
        )
        until(mark.exists)
        server.signal(signal.SIGSTOP)
        thread.join(WAIT_S)
        assert isinstance(answers[0], HostAnswerLost)
    finally:
        pool.close()
        server.stop()


def test_a_server_that_never_greets_means_that_nothing_was_done(sshd: Sshd) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        pool = SshPool((sshd.key,), known_hosts=KnownHosts(()), reach_s=0.7)
        with pytest.raises(HostUnreachable, match="nothing was done"):
            run(pool, sshd.host(port=silent.getsockname()[1]), "true")
        pool.close()


def test_eleven_parallel_commands_fit_under_ten_sessions(sshd: Sshd, pool: SshPool) -> None:
    started = [in_background(lambda: run(pool, sshd.host(), "sleep", "0.3")) for _ in range(11)]
    for thread, _ in started:
        thread.join(WAIT_S)
    assert [answers[0].exit_status for _, answers in started if isinstance(answers[0], Done)] == [0] * 11


def test_a_host_that_allows_fewer_sessions_is_asked_again(tmp_path: Path) -> None:
    server = Sshd(tmp_path / "sshd", options=("MaxSessions 2",)).start()
    pool = SshPool((server.key,), known_hosts=KnownHosts(()))
    try:
        started = [in_background(lambda: run(pool, server.host(), "sleep", "0.2")) for _ in range(8)]
        for thread, _ in started:
            thread.join(WAIT_S)
        assert [answers[0].exit_status for _, answers in started if isinstance(answers[0], Done)] == [0] * 8
    finally:
        pool.close()
        server.stop()


def test_a_connection_dropped_at_max_startups_is_tried_again(tmp_path: Path) -> None:
    server = Sshd(tmp_path / "sshd", options=("MaxStartups 1:100:1",)).start()
    pool = SshPool((server.key,), known_hosts=KnownHosts(()))
    try:
        with socket.create_connection(("127.0.0.1", server.port)) as other:
            other.recv(1)  # greeted: it takes the only place of those who have not logged in
            thread, answers = in_background(lambda: run(pool, server.host(), "true"))
            until(lambda: "drop connection" in (server.folder / "log").read_text())
        thread.join(WAIT_S)
        assert isinstance(answers[0], Done), answers
    finally:
        pool.close()
        server.stop()


def test_two_threads_with_three_hundred_commands_each_lose_nothing(sshd: Sshd, pool: SshPool) -> None:
    where = run(pool, sshd.host(), "sh", "-c", 'echo "$SSH_CONNECTION"').stdout

    def work() -> Done:
        for number in range(300):
            done = run(pool, sshd.host(), "sh", "-c", f"echo {number}; cat", stdin=b"tail")
            assert done.stdout == b"%d\ntail" % number
        return done

    started = [in_background(work) for _ in range(2)]
    for thread, answers in started:
        thread.join(120)
        assert isinstance(answers[0], Done), answers
    assert run(pool, sshd.host(), "sh", "-c", 'echo "$SSH_CONNECTION"').stdout == where


def test_a_child_of_a_fork_is_refused_and_does_the_parents_connection_no_harm(sshd: Sshd, pool: SshPool) -> None:
    where = run(pool, sshd.host(), "sh", "-c", 'echo "$SSH_CONNECTION"').stdout
    pid = os.fork()
    if pid == 0:
        try:
            run(pool, sshd.host(), "true")
        except OpsError as error:
            pool.close()
            own = SshPool((sshd.key,), known_hosts=KnownHosts(()))
            os._exit(0 if "fork" in error.hint and run(own, sshd.host(), "true").exit_status == 0 else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert run(pool, sshd.host(), "sh", "-c", 'echo "$SSH_CONNECTION"').stdout == where


def test_warming_opens_connections_and_tells_which_hosts_cannot_be_reached(sshd: Sshd, pool: SshPool) -> None:
    failed = pool.warm([sshd.host(), sshd.host(name="gone", port=free_port())])
    assert list(failed) == ["gone"]
    assert isinstance(failed["gone"], HostUnreachable)


def test_a_closed_pool_says_so(sshd: Sshd) -> None:
    pool = SshPool((sshd.key,), known_hosts=KnownHosts(()))
    run(pool, sshd.host(), "true")
    pool.close()
    with pytest.raises(OpsError, match="is closed"):
        run(pool, sshd.host(), "true")
