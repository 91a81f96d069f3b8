"""The typed calls of a helper that stays: over OpenSSH to a real user manager, through everything that may end it."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from policies.errors import HostAnswerLost, HostRefused, HostUnreachable, OpsError
from policies.facts import Incarnation
from policies.fleet import Fleet, Host
from policies.fleet_file import read_fleet
from sandbox.kernel import handles
from tests.conftest import Store
from tests.ports import free_port
from tests.real.ssh_servers import Sshd
from tests.workers.lab_host import LabHost, lab_host
from workers.executors import systemd
from workers.executors.answers import Issued, UnitAsk
from workers.executors.helper import HelperCall, helper_for
from workers.executors.systemd import SystemdHost
from workers.hosts import Hosts
from workers.shells import kept
from workers.shells.hostkeys import KnownHosts
from workers.shells.local import LocalShell
from workers.shells.ssh import MAX_CHANNELS, SshPool
from workers.wiring import Wiring

pytestmark = pytest.mark.real
WAIT_S = 30.0
UNIT = "sleeper.service"
ASK = UnitAsk(service="sleeper", unit=UNIT)


@pytest.fixture(scope="module")
def lab() -> Iterator[LabHost]:
    with lab_host() as booted:
        booted.unit(UNIT, "ExecStart=/usr/bin/sleep 600", unit="StartLimitIntervalSec=0")
        booted.manager.systemctl("start", UNIT)
        yield booted


class Target:
    """A host behind OpenSSH whose helper runs beside the lab's manager."""

    def __init__(self, lab: LabHost, folder: Path, *options: str) -> None:
        self.lab = lab
        self.server = Sshd(folder, options=options).start()
        self.pool = SshPool((self.server.key,), known_hosts=KnownHosts(()))
        sent = HelperCall.sent()
        self.helper = HelperCall(tuple(lab.manager.wrap(sent.argv)), sent.source, sent.sha256)
        self.token = int(time.time() * 1000)

    def at(self, *, stay: bool = True, helper: HelperCall | None = None) -> SystemdHost:
        return SystemdHost(self.pool, self.server.host(manager="user"), helper=helper or self.helper, stay=stay)

    def helpers(self) -> list[int]:
        """Helpers that run on the host now."""
        return [pid for pid in self.server.children() if b"memfd_create" in cmdline(pid)]

    def restart(self, step: str) -> Issued:
        return self.at().restart(UNIT, token=self.token, change="C-1", step=step)

    def close(self) -> None:
        self.pool.close()
        self.server.stop()


def cmdline(pid: int) -> bytes:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return b""
    return b" ".join(words) if words[0] == b"/usr/bin/python3" else b""


@contextmanager
def reached(lab: LabHost, folder: Path, *options: str) -> Iterator[Target]:
    target = Target(lab, folder, *options)
    try:
        yield target
    finally:
        target.close()


@pytest.fixture
def target(lab: LabHost, tmp_path: Path) -> Iterator[Target]:
    with reached(lab, tmp_path) as found:
        yield found


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def in_background(work: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    answers: list[object] = []

    def body() -> None:
        try:
            answers.append(work())
        except BaseException as error:  # noqa: BLE001 - handed to the test
            answers.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    return thread, answers


def endless_wait(target: Target, *, stay: bool = True) -> object:
    """Waits for a port that nobody opens."""
    return target.at(stay=stay).wait(
        UNIT, before=None, port=free_port(), health=None, confirmations=1, poll_s=0.05, for_s=120.0
    )


def test_every_call_is_answered_by_the_same_process_and_as_by_one_that_is_started(target: Target) -> None:
    first = target.at().observe([ASK]).facts
    pids = target.helpers()
    assert len(pids) == 1
    issued = target.restart("a")
    waited = target.at().wait(
        UNIT, before=issued.before, port=None, health=None, confirmations=1, poll_s=0.02, for_s=WAIT_S
    )
    assert (waited.state, issued.before) == ("ready", first.units[0].incarnation)
    fenced = target.at().fence(UNIT, token=target.token)
    assert fenced == target.at(stay=False).fence(UNIT, token=target.token)
    assert fenced.incarnation == waited.incarnation
    assert target.helpers() == pids


def test_a_helper_that_was_killed_between_calls_is_started_again_and_nothing_is_done_twice(target: Target) -> None:
    target.at().observe([])
    for pid in target.helpers():
        os.kill(pid, signal.SIGKILL)
    until(lambda: not target.helpers())
    until(lambda: not idle_alive(target))
    issued = target.restart("b")
    assert (issued.already, issued.state) == (False, "issued")
    again = target.restart("b")
    assert (again.already, again.before) == (True, issued.before)


def idle_alive(target: Target) -> bool:
    return any(idle.session.alive for shelf in target.pool.kept._shelves.values() for idle in shelf.idle)


def test_a_helper_that_is_killed_during_an_act_leaves_it_unknown_what_was_done(target: Target) -> None:
    target.at().fence(UNIT, token=target.token)
    lock = target.lab.state_file(UNIT).with_suffix(".json.lock")
    holder = subprocess.Popen(["flock", str(lock), "sleep", "60"], start_new_session=True)
    try:
        until(lambda: locked(lock))
        thread, answers = in_background(lambda: target.restart("c"))
        until(lambda: any(str(lock) in handles(pid) for pid in target.helpers()))  # it stands in line
        for pid in target.helpers():
            os.kill(pid, signal.SIGKILL)
        thread.join(WAIT_S)
    finally:
        os.killpg(holder.pid, signal.SIGKILL)
        holder.wait(WAIT_S)
    assert isinstance(answers[0], HostAnswerLost)
    assert "KILL" in answers[0].message or "status 137" in answers[0].message
    # the host is asked, and knows that it was not done
    assert all(record.step != "c" for record in target.at().fence(UNIT, token=target.token).records)


def locked(path: Path) -> bool:
    return subprocess.run(["flock", "-n", str(path), "true"], check=False).returncode != 0


def test_a_connection_that_is_cut_during_an_act_is_an_answer_lost_and_the_next_call_goes_through(
    target: Target,
) -> None:
    target.at().observe([])
    thread, answers = in_background(lambda: endless_wait(target))
    time.sleep(0.5)
    pids = target.helpers()
    target.server.signal(signal.SIGKILL)
    thread.join(WAIT_S)
    assert isinstance(answers[0], HostAnswerLost)
    assert target.at().observe([ASK]).facts.units[0].active_state == "active"
    until(lambda: not any(cmdline(pid) for pid in pids))


@pytest.mark.parametrize("stay", [True, False], ids=["stays", "started"])
def test_no_helper_goes_on_waiting_on_a_host_whose_caller_has_gone(target: Target, stay: bool) -> None:
    thread, answers = in_background(lambda: endless_wait(target, stay=stay))
    until(lambda: bool(target.helpers()))
    time.sleep(0.5)
    pids = target.helpers()
    assert pids
    target.pool.close()
    until(lambda: not any(cmdline(pid) for pid in pids))
    thread.join(WAIT_S)
    assert isinstance(answers[0], HostAnswerLost)


def test_a_host_that_froze_while_the_helper_waited_is_met_anew_before_an_act_is_sent(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "GREET_AFTER_S", 0.0)
    monkeypatch.setattr(kept, "GREET_S", 1.0)
    target.at().observe([])
    target.server.signal(signal.SIGSTOP)
    issued = target.restart("d")
    assert (issued.already, issued.state) == (False, "issued")


def test_a_host_that_freezes_during_an_act_leaves_it_unknown_what_was_done(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systemd, "CALL_S", 1.5)
    target.at().observe([])
    target.server.signal(signal.SIGSTOP)
    with pytest.raises(HostAnswerLost):
        target.restart("e")
    monkeypatch.undo()
    assert target.at().fence(UNIT, token=target.token).token == target.token


def test_a_token_that_another_worker_raised_between_two_calls_shuts_this_one_out(target: Target) -> None:
    target.at().fence(UNIT, token=target.token)
    pids = target.helpers()
    target.at(stay=False).fence(UNIT, token=target.token + 1)
    with pytest.raises(HostRefused) as stale:
        target.restart("f")
    assert stale.value.code == "stale-token"
    assert target.helpers() == pids


def test_threads_that_call_at_once_get_their_own_answers(target: Target) -> None:
    wrong: list[object] = []

    def work(number: int) -> None:
        for turn in range(25):
            try:
                name = f"s{number}-{turn}"
                units = target.at().observe([ASK.model_copy(update={"service": name})]).facts.units
                if units[0].service != name:
                    wrong.append(units)
            except Exception as error:  # noqa: BLE001 - handed to the test
                wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert wrong == []
    assert 1 <= len(target.helpers()) <= kept.MOST_PER_HOST


def test_a_host_with_one_session_at_a_time_is_served_by_helpers_that_are_started(lab: LabHost, tmp_path: Path) -> None:
    with reached(lab, tmp_path, "MaxSessions 1") as target:
        assert target.at().observe([ASK]).facts.units[0].active_state == "active"
        thread, answers = in_background(lambda: target.at().wait(
            UNIT, before=None, port=free_port(), health=None, confirmations=1, poll_s=0.05, for_s=2.0
        ))  # fmt: skip
        time.sleep(0.3)
        assert target.at().observe([ASK]).facts.units[0].active_state == "active"
        thread.join(WAIT_S)
        assert getattr(answers[0], "state", answers[0]) in ("waiting", "foreign-port-owner")


def test_a_helper_that_cannot_stay_is_started_for_each_call(target: Target, tmp_path: Path) -> None:
    source = HelperCall.sent().source
    old = tmp_path / "old.py"
    old.write_bytes(source.replace(b'VERBS = {"hello": hello, ', b"VERBS = {"))
    helper = HelperCall.installed(*target.lab.manager.wrap(("/usr/bin/python3", "-I", str(old))))
    observed = target.at(helper=helper).observe([ASK])
    assert observed.facts.units[0].active_state == "active"
    assert not idle_alive(target)


def test_a_host_without_python_did_nothing_by_either_way(target: Target) -> None:
    helper = replace(target.helper, argv=("/nonexistent/python3", "-c", "x"))
    with pytest.raises(HostRefused, match="nothing was done") as refusal:
        target.at(helper=helper).restart(UNIT, token=target.token, change="C-1", step="g")
    assert refusal.value.code == "no-helper"


def test_another_program_in_the_place_of_the_one_that_was_sent_is_asked_nothing(target: Target) -> None:
    helper = replace(target.helper, sha256="f" * 64)
    with pytest.raises(HostRefused, match="nothing was done") as refusal:
        target.at(helper=helper).restart(UNIT, token=target.token, change="C-1", step="h")
    assert refusal.value.code == "other-helper"
    until(lambda: not target.helpers())


def test_a_host_that_is_away_is_unreachable_and_not_tried_twice(target: Target) -> None:
    target.server.stop()
    with pytest.raises(HostUnreachable, match="nobody listens there"):
        target.at().observe([])


def test_a_closed_pool_leaves_no_helper_on_the_host(target: Target) -> None:
    threads = [in_background(lambda: target.at().observe([ASK]))[0] for _ in range(2)]
    for thread in threads:
        thread.join(WAIT_S)
    pids = target.helpers()
    assert pids
    target.pool.close()
    until(lambda: not any(cmdline(pid) for pid in pids))


def test_a_helper_that_waited_too_long_is_not_asked(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    target.at().observe([])
    pids = target.helpers()
    monkeypatch.setattr(target.pool.kept, "_keep_s", 0.0)
    target.at().observe([])
    until(lambda: not any(cmdline(pid) for pid in pids))
    assert target.helpers()


def test_two_kinds_of_helper_share_the_places_of_a_host(target: Target) -> None:
    helpers = [replace(target.helper, argv=(*target.helper.argv, str(number))) for number in range(3)]
    for turn in range(2):
        for helper in helpers:
            assert target.at(helper=helper).observe([]).facts.host == "gpu1", turn
    assert 1 <= len(target.helpers()) <= kept.MOST_PER_HOST


def test_a_helper_stays_on_this_machine_too() -> None:
    shell = LocalShell()
    here = SystemdHost(shell, Host(name="here", address="localhost", user="me", manager="user"), stay=True)
    for _ in range(50):
        assert here.observe([]).facts.host == "here"
    assert sum(len(shelf.idle) for shelf in shell.kept._shelves.values()) == 1
    shell.close()
    assert not any(len(shelf.idle) for shelf in shell.kept._shelves.values())


def fleet_of(*hosts: Host) -> Fleet:
    lines = "".join(
        f"  {h.name}: {{address: {h.address}, port: {h.port}, user: {h.user}, host_key: {h.host_key}, manager: user}}\n"
        for h in hosts
    )
    names = ", ".join(h.name for h in hosts)
    reading = read_fleet(
        f"version: 1\nname: t\nhosts:\n{lines}services:\n  s:\n    on: [{names}]\n    unit: {UNIT}\n"
        '    health: {url: "http://127.0.0.1:9/", from: host}\nroles: {e: {users: [U1]}}\nrestarts: {r: [s]}\n',
        "fleet.yaml",
    )
    assert reading.fleet is not None, reading.errors
    return reading.fleet


def test_warming_makes_helpers_ready_and_tells_who_is_away(tmp_path: Path) -> None:
    server = Sshd(tmp_path).start()
    pool = SshPool((server.key,), known_hosts=KnownHosts(()))
    try:
        away = server.host(name="away", port=free_port(), manager="user")
        hosts = Hosts(fleet_of(server.host(manager="user"), away), pool)
        failed = hosts.warm(["gpu1", "away", "gpu1"])
        assert list(failed) == ["away"]
        pids = [pid for pid in server.children() if cmdline(pid)]
        assert len(pids) == 1
        assert hosts.at("gpu1").observe([]).facts.helper == helper_for(server.host(manager="user")).sha256
        assert [pid for pid in server.children() if cmdline(pid)] == pids
        assert hosts.warm([]) == {}
    finally:
        pool.close()
        server.stop()


def test_an_incarnation_is_the_same_by_both_ways(target: Target) -> None:
    lives: set[Incarnation] = set()
    for stay in (True, False):
        lives.add(target.at(stay=stay).fence(UNIT, token=target.token).incarnation)
    assert len(lives) == 1


def test_a_wiring_closes_the_shell_that_it_opened_and_opens_none_to_close_it(target: Target, store: Store) -> None:
    opened: list[SshPool] = []

    def open_shell() -> SshPool:
        opened.append(target.pool)
        return target.pool

    wiring = Wiring(fleet_of(target.server.host(manager="user")), store.redis, open_shell)
    wiring.close()
    assert opened == []
    wiring.hosts.at("gpu1").observe([])
    wiring.close()
    with pytest.raises(OpsError, match="closed"):
        target.pool.run(target.server.host(), ("true",), deadline_s=WAIT_S, max_output_bytes=100)


def test_helpers_that_only_wait_take_no_command_its_place(target: Target) -> None:
    host = target.server.host(manager="user")
    threads = [in_background(lambda: endless_wait_of(target, 0.5))[0] for _ in range(2)]
    for thread in threads:
        thread.join(WAIT_S)
    assert len(target.helpers()) == kept.MOST_PER_HOST
    barrier = threading.Barrier(MAX_CHANNELS)

    def command() -> int:
        barrier.wait(WAIT_S)
        return target.pool.run(host, ("sleep", "1"), deadline_s=WAIT_S, max_output_bytes=100).exit_status

    started = [in_background(command) for _ in range(MAX_CHANNELS)]
    for thread, _ in started:
        thread.join(WAIT_S)
    assert [answers for _, answers in started] == [[0]] * MAX_CHANNELS
    assert target.helpers() == []


def endless_wait_of(target: Target, for_s: float) -> object:
    return target.at().wait(UNIT, before=None, port=free_port(), health=None, confirmations=1, poll_s=0.05, for_s=for_s)
