"""The whole way: SSH, the host helper sent along, and a real systemd user manager."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from policies.errors import HostRefused
from policies.fleet import Host, HttpCheck, Service
from sandbox.fleet.manager import UserManager
from sandbox.fleet.sshd import SshHost, SshLoop
from tests.ports import free_port
from tests.real.ssh_servers import make_key
from tests.sandbox.fleet_client import manager_booted
from workers.executors.answers import unit_ask
from workers.executors.systemd import SystemdHost
from workers.shells.hostkeys import KnownHosts
from workers.shells.ssh import SshPool

pytestmark = pytest.mark.real

UNIT = "engine.service"
TEXT = '[Service]\nEnvironment="CTAS=512"\n'


@pytest.fixture(scope="module")
def port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory, port: int) -> Iterator[UserManager]:
    with manager_booted(tmp_path_factory.mktemp("h") / "gpu1") as found:
        (found.units / UNIT).write_text(
            "[Unit]\nDefaultDependencies=no\n[Service]\n"
            f"ExecStart=/usr/bin/python3 -m http.server --bind 127.0.0.1 --directory {found.home} {port}\n"
        )
        found.systemctl("daemon-reload")
        found.systemctl("start", UNIT)
        yield found


@pytest.fixture(scope="module")
def target(manager: UserManager, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SystemdHost]:
    key = tmp_path_factory.mktemp("key") / "key"
    loop = SshLoop()
    server = SshHost(loop, manager.wrap, make_key(key))
    server.start()
    host = Host(
        name="gpu1",
        address="127.0.0.1",
        port=server.port,
        user=server.user,
        host_key=server.host_key,
        manager="user",
    )
    pool = SshPool((key,), known_hosts=KnownHosts(()))
    yield SystemdHost(pool, host)
    pool.close()
    server.stop()
    loop.stop()


def service(port: int) -> Service:
    return Service(name="engine", on=("gpu1",), unit=UNIT, health=HttpCheck(url=f"http://127.0.0.1:{port}/"))


def test_a_knob_goes_live_and_a_stale_worker_is_shut_out(target: SystemdHost, manager: UserManager, port: int) -> None:
    ask = unit_ask(service(port), ("CTAS",))
    start = target.observe([ask]).facts.units[0]
    assert (start.active_state, start.unit) == ("active", UNIT)
    assert {(p.main, p.answer) for p in start.processes} == {(True, "absent")}

    written = target.write(UNIT, token=1, change="C-1", step="write", text=TEXT, expect_sha256=None)
    assert written.sha256_after == hashlib.sha256(TEXT.encode()).hexdigest()
    assert written.dropins == (written.path,)
    with pytest.raises(HostRefused) as changed:
        target.write(UNIT, token=1, change="C-2", step="write", text=None, expect_sha256=None)
    assert changed.value.code == "file-changed"

    issued = target.restart(UNIT, token=1, change="C-1", step="restart")
    assert (issued.already, issued.before) == (False, start.incarnation)
    waited = target.wait(
        UNIT,
        before=issued.before,
        port=port,
        health=HttpCheck(url=f"http://127.0.0.1:{port}/", timeout_s=5.0),
        confirmations=2,
        poll_s=0.02,
        for_s=20.0,
    )
    assert waited.state == "ready"
    assert waited.port is not None
    assert waited.port.in_unit
    assert waited.health is not None
    assert waited.health.status == 200

    again = target.restart(UNIT, token=1, change="C-1", step="restart")
    assert (again.already, again.current) == (True, waited.incarnation)

    now = target.observe([ask]).facts.units[0]
    assert [(p.pid, p.answer, p.value) for p in now.processes] == [(waited.incarnation.main_pid, "present", "512")]
    assert now.port is not None
    assert now.port.pid == waited.incarnation.main_pid

    fenced = target.fence(UNIT, token=2)
    assert [(r.verb, r.state, r.token) for r in fenced.records] == [("write", "done", 1), ("restart", "issued", 1)]
    assert fenced.records[1].after == waited.incarnation
    with pytest.raises(HostRefused) as stale:
        target.restart(UNIT, token=1, change="C-1", step="undo")
    assert stale.value.code == "stale-token"
    assert target.observe([ask]).facts.units[0].incarnation == waited.incarnation


def test_a_unit_that_is_not_there_is_an_observation_and_no_target(target: SystemdHost, port: int) -> None:
    ask = unit_ask(service(port)).model_copy(update={"unit": "none.service"})
    assert target.observe([ask]).facts.units[0].load_state == "not-found"
    with pytest.raises(HostRefused) as refusal:
        target.restart("none.service", token=1, change="C-1", step="1")
    assert refusal.value.code == "no-such-unit"
