"""The SSH servers of the demo's hosts, with paramiko as the client."""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import paramiko
import pytest

from sandbox.fleet.manager import UserManager
from sandbox.fleet.sshd import SshHost, SshLoop
from tests.sandbox.fleet_client import command, connected, manager_booted, until

pytestmark = pytest.mark.real

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "key"
    path.write_bytes(asyncssh.generate_private_key("ssh-ed25519").export_private_key())
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UserManager]:
    with manager_booted(tmp_path_factory.mktemp("h") / "gpu1") as found:
        yield found


@pytest.fixture(scope="module")
def loop() -> Iterator[SshLoop]:
    found = SshLoop()
    yield found
    found.stop()


@pytest.fixture
def ssh(manager: UserManager, loop: SshLoop, key_file: Path) -> Iterator[SshHost]:
    public = asyncssh.read_private_key(str(key_file)).export_public_key().decode()
    host = SshHost(loop, manager.wrap, public)
    host.start()
    yield host
    host.stop()


def test_a_command_sees_the_host_and_nothing_of_the_parents_environment(
    manager: UserManager, ssh: SshHost, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_PARENT", "1")
    with connected(ssh, key_file) as client:
        status, out, err = command(client, "env; pwd; ls /run; systemctl --user is-system-running")
    lines = out.decode().splitlines()
    assert (status, err) == (0, b"")
    assert f"XDG_RUNTIME_DIR={manager.xdg}" in lines
    assert f"HOME={manager.home}" in lines
    assert "PATH=/usr/bin:/bin" in lines
    assert str(manager.home) in lines
    assert "SECRET_OF_THE_PARENT=1" not in lines
    assert lines[-1] == "running"


def test_streams_are_binary_unlimited_and_apart(ssh: SshHost, key_file: Path) -> None:
    data = os.urandom(4 * MIB)
    with connected(ssh, key_file) as client:
        status, out, err = command(client, "cat; head -c 3145728 /dev/zero >&2; exit 7", data)
    assert status == 7
    assert hashlib.sha256(out).digest() == hashlib.sha256(data).digest()
    assert err == bytes(3 * MIB)


def test_input_that_a_command_does_not_read_is_thrown_away(ssh: SshHost, key_file: Path) -> None:
    with connected(ssh, key_file) as client:
        assert command(client, "exec <&-; echo done", bytes(MIB))[:2] == (0, b"done\n")


def test_a_signal_is_reported_as_no_exit_status(ssh: SshHost, key_file: Path) -> None:
    with connected(ssh, key_file) as client:
        assert command(client, "kill -9 $$")[0] == -1


def test_the_status_of_a_command_comes_before_a_background_child_lets_go_of_the_output(
    manager: UserManager, ssh: SshHost, key_file: Path
) -> None:
    fifo = manager.home / "fifo"
    os.mkfifo(fifo)
    with connected(ssh, key_file) as client:
        transport = client.get_transport()
        assert transport is not None
        channel = transport.open_session()
        channel.exec_command("cat fifo & echo up")
        until(channel.exit_status_ready, "the status arrived")
        assert channel.recv_exit_status() == 0
        assert channel.recv(100) == b"up\n"
        assert not channel.eof_received  # the child still holds it
        fifo.write_text("late", encoding="ascii")
        assert channel.recv(100) == b"late"
        assert channel.recv(100) == b""


def test_ten_sessions_run_at_once_on_one_connection(ssh: SshHost, key_file: Path) -> None:
    with connected(ssh, key_file) as client:
        transport = client.get_transport()
        assert transport is not None
        channels = [transport.open_session() for _ in range(10)]
        for number, channel in enumerate(channels):
            channel.exec_command(f"read line; echo {number} $line")
        for channel in reversed(channels):
            channel.sendall(b"x\n")
        assert [channel.recv(100) for channel in channels] == [f"{n} x\n".encode() for n in range(10)]
        for channel in channels:
            channel.close()


def test_shells_subsystems_terminals_and_forwarding_are_refused(ssh: SshHost, key_file: Path) -> None:
    with connected(ssh, key_file) as client:
        transport = client.get_transport()
        assert transport is not None
        for ask in ("invoke_shell", "get_pty"):
            channel = transport.open_session()
            with pytest.raises(paramiko.SSHException):
                getattr(channel, ask)()
        with pytest.raises(paramiko.SSHException):
            client.open_sftp()
        with pytest.raises(paramiko.ChannelException):
            transport.open_channel("direct-tcpip", ("127.0.0.1", 1), ("127.0.0.1", 1), timeout=60)


def test_another_key_or_another_user_is_not_let_in(ssh: SshHost, key_file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(asyncssh.generate_private_key("ssh-ed25519").export_private_key())
    with pytest.raises(paramiko.AuthenticationException), connected(ssh, other):
        pass
    with pytest.raises(paramiko.AuthenticationException), connected(ssh, key_file, user="somebody"):
        pass


def test_dropped_connections_end_and_the_command_goes_on(manager: UserManager, ssh: SshHost, key_file: Path) -> None:
    mark = manager.home / "finished"
    with connected(ssh, key_file) as client:
        transport = client.get_transport()
        assert transport is not None
        channel = transport.open_session()
        channel.exec_command("echo begun; sleep 0.5; echo more; touch finished")
        assert channel.recv(100) == b"begun\n"
        ssh.drop_connections()
        until(lambda: not transport.is_active(), "the connection ended")
    until(mark.exists, "the command finished without its connection")


def test_refused_connections_are_refused_by_the_kernel_and_the_port_comes_back(ssh: SshHost, key_file: Path) -> None:
    with connected(ssh, key_file) as client:
        ssh.refuse()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", ssh.port), timeout=60)
        assert command(client, "echo still")[1] == b"still\n"
        ssh.refuse(False)
    with connected(ssh, key_file) as client:
        assert command(client, "echo again")[1] == b"again\n"


def test_a_frozen_server_keeps_connections_and_answers_nothing(ssh: SshHost, key_file: Path) -> None:
    with connected(ssh, key_file) as client:
        transport = client.get_transport()
        assert transport is not None
        ssh.freeze()
        with pytest.raises(paramiko.SSHException):
            transport.open_session(timeout=0.5)
        with socket.create_connection(("127.0.0.1", ssh.port), timeout=60) as raw:
            raw.settimeout(0.5)
            with pytest.raises(TimeoutError):
                raw.recv(1)
        assert transport.is_active()
        ssh.freeze(False)
        assert command(client, "echo thawed")[1] == b"thawed\n"


def test_a_delay_is_added_in_each_direction(ssh: SshHost, key_file: Path) -> None:
    with connected(ssh, key_file) as client:
        ssh.delay(100)
        began_s = time.monotonic()
        assert command(client, "echo late")[1] == b"late\n"
        assert time.monotonic() - began_s >= 0.4  # open and exec, there and back
        ssh.delay(0)


def test_a_changed_host_key_is_shown_to_new_connections(ssh: SshHost, key_file: Path) -> None:
    old = ssh.host_key
    new = ssh.change_host_key()
    assert new != old
    with pytest.raises(paramiko.BadHostKeyException), connected(ssh, key_file, host_key=old):
        pass
    with connected(ssh, key_file, host_key=new) as client:
        assert command(client, "true")[0] == 0
