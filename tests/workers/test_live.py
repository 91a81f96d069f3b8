"""The embedded Valkey: private, alone in its folder, and nothing acknowledged is lost."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from policies.errors import SettingsError, StoreUnavailable
from sandbox.kernel import handles
from workers.live import EmbeddedStore, running_url
from workers.store import connect, persistence

ROOT = Path(__file__).parents[2]
OWNER = """
import sys, threading, time
from workers.live import EmbeddedStore
made = []
thread = threading.Thread(target=lambda: made.append(EmbeddedStore(sys.argv[1])))
thread.start(); thread.join()
print(made[0].pid, made[0].url, flush=True)
sys.stdin.readline()
made[0].stop()
print("stopped", flush=True)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cb-") as name:
        yield Path(name) / "data"


def _gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def _wait_gone(pid: int) -> None:
    deadline = time.monotonic() + 30
    while not _gone(pid):
        assert time.monotonic() < deadline, f"process {pid} goes on"
        time.sleep(0.02)


def _wait_noticed(server: EmbeddedStore) -> None:
    deadline = time.monotonic() + 30
    while server.alive:
        assert time.monotonic() < deadline, "the end of the server was not noticed"
        time.sleep(0.02)


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_nobody_else_can_open_the_folder_the_socket_or_the_password(folder: Path) -> None:
    with EmbeddedStore(folder) as server:
        assert _mode(folder) == 0o700
        assert _mode(folder / "valkey.sock") == 0o700
        assert [_mode(folder / name) for name in ("password", "valkey.conf", "lock")] == [0o600] * 3
        assert server.url.startswith("unix://")
        client = connect(server.url)
        assert {str(value) for value in client.config_get("port").values()} <= {"0", "b'0'"}
        client.close()


def test_the_server_listens_on_no_tcp_port_and_asks_for_the_password(folder: Path) -> None:
    with EmbeddedStore(folder) as server:
        assert server.pid is not None
        inodes = set(handles(server.pid))
        listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        assert not {f"socket:[{fields[9]}]" for fields in listening if fields[3] == "0A"} & inodes
        plain = socket.socket(socket.AF_UNIX)
        plain.settimeout(10)
        plain.connect(str(folder / "valkey.sock"))
        plain.sendall(b"GET x\r\n")
        assert plain.recv(100).startswith(b"-NOAUTH")
        plain.close()


def test_everything_acknowledged_survives_a_kill_of_the_server(folder: Path) -> None:
    with EmbeddedStore(folder) as server:
        client = connect(server.url)
        for number in range(200):
            client.rpush("list", number)
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        _wait_noticed(server)
        deadline = time.monotonic() + 30
        while server.alive and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not server.alive
        server.revive()
        assert client.lrange("list", 0, -1) == [str(number).encode() for number in range(200)]
        assert persistence(client)[0].code == "store.persistent"
        client.close()


def test_a_stop_and_a_new_start_keep_address_and_data(folder: Path) -> None:
    with EmbeddedStore(folder) as first:
        url, pid = first.url, first.pid
        client = connect(url)
        client.set("k", "v")
        client.close()
    assert pid is not None
    assert _gone(pid)
    with EmbeddedStore(folder) as second:
        assert second.url == url
        client = connect(second.url)
        assert client.get("k") == b"v"
        client.close()


def test_a_second_start_on_the_folder_names_the_holder(folder: Path) -> None:
    with EmbeddedStore(folder) as first:
        with pytest.raises(SettingsError, match=f"is in use by process {os.getpid()}"):
            EmbeddedStore(folder)
        assert first.alive
        assert running_url(folder) == first.url
    assert running_url(folder) is None
    assert running_url(folder / "none") is None


def test_a_second_process_on_the_folder_is_refused(folder: Path) -> None:
    with EmbeddedStore(folder):
        other = subprocess.run(
            [sys.executable, "-c", OWNER, str(folder)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=60,
            check=False,
        )
        assert f"SettingsError: `{folder}` is in use by process {os.getpid()}" in other.stderr


def test_a_kill_of_the_parent_ends_the_server_and_the_next_start_has_the_data(folder: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert owner.stdout is not None
    pid, url = owner.stdout.readline().split()
    client = connect(url)
    client.set("k", "v")  # the thread that started the server has ended: the server has not
    client.close()
    owner.kill()
    owner.communicate()
    _wait_gone(int(pid))
    with EmbeddedStore(folder) as server:
        client = connect(server.url)
        assert client.get("k") == b"v"
        client.close()


def test_a_server_left_behind_is_ended_by_the_next_start(folder: Path) -> None:
    first = EmbeddedStore(folder)
    client = connect(first.url)
    client.set("k", "v")
    client.close()
    os.close(first._lock)  # as if this process had been killed and the death signal had been lost
    assert first.pid is not None
    with EmbeddedStore(folder) as second:
        assert _gone(first.pid)
        assert second.pid != first.pid
        client = connect(second.url)
        assert client.get("k") == b"v"
        client.close()


def test_a_stale_pid_file_of_somebody_else_ends_nobody(folder: Path) -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        folder.mkdir(mode=0o700)
        (folder / "valkey.pid").write_text(f"{bystander.pid}\n")
        with EmbeddedStore(folder):
            assert bystander.poll() is None
    finally:
        bystander.communicate(b"\n", timeout=30)


def test_a_server_that_cannot_start_is_unavailable_and_gives_the_folder_back(folder: Path) -> None:
    with EmbeddedStore(folder):
        pass
    (manifest,) = (folder / "appendonlydir").glob("*.manifest")
    good = manifest.read_bytes()
    manifest.write_bytes(b"nonsense\n")
    with pytest.raises(StoreUnavailable, match="did not get ready"):
        EmbeddedStore(folder)
    manifest.write_bytes(good)
    with EmbeddedStore(folder) as server:
        assert server.alive


def test_a_folder_that_was_taken_away_is_said_to_be_and_nothing_starts_on_an_empty_one(folder: Path) -> None:
    away = folder.with_name("away")
    with EmbeddedStore(folder) as server:
        client = connect(server.url)
        client.set("kept", "1")
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        _wait_noticed(server)
        folder.rename(away)
        for _ in ("gone", "empty"):
            with pytest.raises(StoreUnavailable, match="is not what it was") as said:
                server.revive()
            assert said.value.hint == "put the folder back: the ledger is in it"
            folder.mkdir(exist_ok=True)
        folder.rmdir()
        folder.write_text("a file")
        with pytest.raises(StoreUnavailable, match="is not what it was"):
            server.revive()
        folder.unlink()
        away.rename(folder)
        server.revive()
        assert client.get("kept") == b"1"
        client.close()


def test_a_folder_too_long_for_a_socket_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="bytes too long for a unix socket"):
        EmbeddedStore(tmp_path / ("x" * 120))


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(SettingsError, match="cannot be used: File exists"):
        EmbeddedStore(tmp_path / "data")


def test_a_missing_binary_is_said_and_hangs_nobody(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.live.find_binary", lambda: folder / "none")
    with pytest.raises(StoreUnavailable, match="the embedded Valkey cannot be started"):
        EmbeddedStore(folder)


def test_stopping_twice_is_stopping_once(folder: Path) -> None:
    server = EmbeddedStore(folder)
    server.stop()
    server.stop()
    assert not server.alive
