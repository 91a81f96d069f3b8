"""The helper's verb wait, on a real user manager: what is ready, and what only looks like it."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.ports import free_port
from tests.workers.lab_host import LabHost, lab_host

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def host() -> Iterator[LabHost]:
    with lab_host() as booted:
        yield booted


@pytest.fixture
def unit(host: LabHost, request: pytest.FixtureRequest) -> Iterator[str]:
    """A unit name of its own for each test; the unit is stopped afterwards."""
    name = f"w{abs(hash(request.node.nodeid)) % 10**8}.service"
    yield name
    host.manager.run(["systemctl", "--user", "stop", name])


def health(port: int, timeout_s: float = 10.0) -> dict[str, Any]:
    return {"url": f"http://127.0.0.1:{port}/health", "timeout_s": timeout_s}


def restarted(host: LabHost, unit: str) -> dict[str, Any]:
    """Restarts the unit by the helper; the incarnation before."""
    before: dict[str, Any] = host.done("restart", unit=unit, token=1, change="C-1", step="1")["before"]
    return before


def started(host: LabHost, unit: str, port: int, *words: object, more: str = "") -> dict[str, Any]:
    """A running engine, ready; its answer of wait."""
    host.unit(unit, f"{more}\n{host.engine_line(port, *words)}")
    host.manager.systemctl("start", "--no-block", unit)
    answer = host.done("wait", unit=unit, before=None, port=port, health=health(port), for_s=30)
    assert answer["state"] == "ready", answer
    return answer


def test_a_restarted_unit_is_ready_when_the_new_life_owns_the_port_and_answers_twice(host: LabHost, unit: str) -> None:
    port = free_port()
    first = started(host, unit, port, 0.3, 1.0)
    asked_at = time.time()
    before = restarted(host, unit)
    assert before == first["incarnation"]
    answer = host.done("wait", unit=unit, before=before, port=port, health=health(port), for_s=30)
    assert answer["state"] == "ready"
    now = answer["incarnation"]
    assert all(now[k] != before[k] for k in ("main_pid", "started", "invocation_id"))
    assert (answer["active_state"], answer["result"], answer["n_restarts"]) == ("active", "success", 0)
    assert (answer["port"]["pid"], answer["port"]["in_unit"]) == (now["main_pid"], True)
    assert answer["health"]["status"] == 200
    since = answer["since"]
    order = [since[k] for k in ("new_incarnation_at", "port_owned_at", "first_200_at", "ready_at")]
    assert order == sorted(order)
    assert order[2] - asked_at >= 1.0  # health is 503 for the first second of its life


def test_restarts_that_systemd_counted_before_ours_are_not_counted_for_the_new_life(host: LabHost, unit: str) -> None:
    well = host.folder / "well"
    line = f"ExecStart=/bin/sh -c 'test -e {well} || exit 3; exec sleep 600'"
    host.unit(unit, f"Restart=always\nRestartSec=0.1\n{line}", unit="StartLimitIntervalSec=0")
    host.manager.systemctl("start", "--no-block", unit)
    deadline = time.monotonic() + 60
    while int(host.manager.show(unit, "NRestarts")["NRestarts"]) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    host.unit(unit, f"Restart=always\nRestartSec=1h\n{line}", unit="StartLimitIntervalSec=0")
    while "1h" not in host.manager.show(unit, "RestartUSec")["RestartUSec"] or not paused(host, unit):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    settled(host, unit)  # the pause that began before the reload is a short one
    well.touch()
    before = restarted(host, unit)  # meets the pause: systemd keeps its count
    assert before["main_pid"] == 0
    answer = host.done("wait", unit=unit, before=before, port=None, health=None, for_s=20)
    well.unlink()
    assert (answer["state"], answer["n_restarts"]) == ("ready", 0)
    assert answer["n_restarts_shown"] >= 3


def settled(host: LabHost, unit: str) -> None:
    """Wait until the unit is in one and the same pause for a whole second."""
    deadline, same, seen = time.monotonic() + 60, 0, ""
    while same < 10:
        assert time.monotonic() < deadline
        time.sleep(0.1)
        now = host.manager.show(unit, "NRestarts")["NRestarts"]
        same = same + 1 if now == seen and paused(host, unit) else 0
        seen = now


def paused(host: LabHost, unit: str) -> bool:
    """Whether systemd waits before it starts the unit again."""
    return host.manager.show(unit, "SubState")["SubState"] == "auto-restart"


def test_the_life_from_before_is_never_ready(host: LabHost, unit: str) -> None:
    port = free_port()
    first = started(host, unit, port, 0, 0)
    answer = host.done("wait", unit=unit, before=first["incarnation"], port=port, health=health(port), for_s=1)
    assert (answer["state"], answer["health"]) == ("waiting", None)
    assert answer["since"]["new_incarnation_at"] is None
    partly = dict(first["incarnation"], main_pid=1, started=1)
    answer = host.done("wait", unit=unit, before=partly, port=port, health=health(port), for_s=1)
    assert answer["state"] == "waiting"


def test_a_port_held_by_a_process_outside_is_said_and_its_200_does_not_count(host: LabHost, unit: str) -> None:
    port = free_port()
    old = subprocess.Popen([sys.executable, str(host.engine), str(port), "0", "0"])
    try:
        with contextlib.suppress(TimeoutError):
            _wait_open(port)
        host.unit(unit, "ExecStart=/usr/bin/sleep 600")
        host.manager.systemctl("start", unit)
        before = restarted(host, unit)
        answer = host.done("wait", unit=unit, before=before, port=port, health=health(port), for_s=3)
        assert answer["state"] == "foreign-port-owner"
        assert (answer["port"]["pid"], answer["port"]["in_unit"]) == (old.pid, False)
        assert answer["health"] is None
        assert answer["incarnation"]["main_pid"] != before["main_pid"]
    finally:
        old.kill()
        old.wait()


def test_a_leftover_of_the_old_life_in_the_units_own_cgroup_does_not_count_either(host: LabHost, unit: str) -> None:
    port = free_port()
    script = host.folder / "leaver.sh"
    # the first life leaves its engine behind; the second one only sleeps
    script.write_text(
        f"#!/bin/sh\nif mkdir {host.folder}/left-{port} 2>/dev/null; then\n"
        f"  /usr/bin/python3 {host.engine} {port} 0 0 &\nfi\nexec /usr/bin/sleep 600\n",
        encoding="utf-8",
    )
    script.chmod(0o755)
    host.unit(unit, f"KillMode=process\nExecStart={script}")
    host.manager.systemctl("start", unit)
    _wait_open(port)
    before = restarted(host, unit)
    answer = host.done("wait", unit=unit, before=before, port=port, health=health(port), for_s=3)
    assert answer["state"] == "foreign-port-owner"
    assert answer["port"]["started"] < answer["incarnation"]["started"]
    subprocess.run(["/bin/kill", "-9", str(answer["port"]["pid"])], check=True)


def test_a_unit_that_fails_is_said_at_once_with_its_result(host: LabHost, unit: str) -> None:
    host.unit(unit, "ExecStart=/bin/sh -c 'sleep 0.3; exit 3'")
    host.manager.systemctl("start", unit)
    before = restarted(host, unit)
    answer = host.done("wait", unit=unit, before=before, port=free_port(), health=None, for_s=30)
    assert (answer["state"], answer["active_state"], answer["result"]) == ("failed", "failed", "exit-code")
    assert answer["exec_main_status"] == 3


def test_a_unit_that_ends_by_itself_has_failed_too(host: LabHost, unit: str) -> None:
    host.unit(unit, "ExecStart=/bin/sleep 0.3")
    host.manager.systemctl("start", unit)
    before = restarted(host, unit)
    answer = host.done("wait", unit=unit, before=before, port=free_port(), health=None, for_s=30)
    assert (answer["state"], answer["active_state"]) == ("failed", "inactive")


def test_a_crash_loop_keeps_waiting_and_tells_the_number_of_restarts(host: LabHost, unit: str) -> None:
    host.unit(
        unit,
        "Restart=always\nRestartSec=0.2\nExecStart=/bin/sh -c 'sleep 0.2; exit 1'",
        unit="StartLimitIntervalSec=0",
    )
    host.manager.systemctl("start", unit)
    before = restarted(host, unit)
    answer = host.done("wait", unit=unit, before=before, port=free_port(), health=None, for_s=3)
    assert answer["state"] == "waiting"
    assert answer["n_restarts"] >= 1


def test_a_notify_unit_that_is_killed_by_its_start_timeout_says_timeout(host: LabHost, unit: str) -> None:
    host.unit(unit, "Type=notify\nTimeoutStartSec=1\nExecStart=/usr/bin/sleep 600")
    before = restarted(host, unit)
    answer = host.done("wait", unit=unit, before=before, port=None, health=None, for_s=30)
    assert (answer["state"], answer["result"]) == ("failed", "timeout")
    assert answer["exec_main_status"] == 15


def test_a_restart_by_somebody_else_is_seen_as_another_life(host: LabHost, unit: str) -> None:
    port = free_port()
    started(host, unit, port, 0, 0)
    before = restarted(host, unit)
    seen = host.done("wait", unit=unit, before=before, port=port, health=health(port), for_s=30)["incarnation"]
    host.manager.systemctl("restart", unit)
    answer = host.done("wait", unit=unit, before=before, expect=seen, port=port, health=health(port), for_s=10)
    assert answer["state"] == "other-incarnation"
    assert answer["incarnation"] != seen


def test_another_life_within_one_slice_is_seen_too(host: LabHost, unit: str) -> None:
    port = free_port()
    started(host, unit, port, 0, 0)
    before = restarted(host, unit)
    with socket.socket() as ear:  # whoever asks it for health is looking at the new life already
        ear.bind(("127.0.0.1", 0))
        ear.listen()
        ear.settimeout(30)
        never_well = {"url": f"http://127.0.0.1:{ear.getsockname()[1]}/", "timeout_s": 30}
        answers: list[dict[str, Any]] = []
        asked = {"unit": unit, "before": before, "port": port, "health": never_well, "for_s": 20}
        thread = threading.Thread(target=lambda: answers.append(host.done("wait", **asked)))
        thread.start()
        caller, _ = ear.accept()
        host.manager.systemctl("restart", unit)
        caller.close()
    thread.join(60)
    assert [a["state"] for a in answers] == ["other-incarnation"]


def test_health_that_is_no_200_keeps_it_waiting(host: LabHost, unit: str) -> None:
    port = free_port()
    host.unit(unit, host.engine_line(port, 0, 600))
    host.manager.systemctl("start", unit)
    answer = host.done("wait", unit=unit, before=None, port=port, health=health(port), for_s=2)
    assert (answer["state"], answer["health"]["status"]) == ("waiting", 503)
    assert answer["since"]["port_owned_at"] is not None
    assert answer["since"]["first_200_at"] is None


def test_a_slow_health_answer_is_not_cut_at_the_end_of_the_slice(host: LabHost, unit: str) -> None:
    port = free_port()
    host.unit(unit, host.engine_line(port, 0, 0))
    host.manager.systemctl("start", unit)
    slow = {"url": f"http://127.0.0.1:{port}/slow", "timeout_s": 25}
    answer = host.done("wait", unit=unit, before=None, port=port, health=slow, for_s=2, confirmations=2)
    assert answer["state"] == "ready"


def test_without_port_and_health_an_active_new_life_is_ready(host: LabHost, unit: str) -> None:
    host.unit(unit, "ExecStart=/usr/bin/sleep 600")
    host.manager.systemctl("start", unit)
    before = restarted(host, unit)
    answer = host.done("wait", unit=unit, before=before, port=None, health=None, for_s=30)
    assert (answer["state"], answer["port"], answer["health"]) == ("ready", None, None)


def test_waiting_for_a_unit_that_does_not_exist_is_refused(host: LabHost) -> None:
    assert host.refused("wait", unit="none.service", before=None, for_s=5)["code"] == "no-such-unit"


def _wait_open(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise TimeoutError(port)
