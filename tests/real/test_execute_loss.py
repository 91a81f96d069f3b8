"""What dies or lies: connections, workers, workers that wake up too late. Judged by how often services were started."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from policies import events as e
from policies.errors import HostRefused
from policies.intents import RevertKnob
from sandbox.fleet.document import KNOB, KNOB_ENV
from sandbox.fleet.units import unit_name
from tests.real.stage import PYTHON, WAIT_S, Stage, plan_of, until
from tests.shared import ROOT

pytestmark = pytest.mark.real

Start = Callable[[str, str, str, str, int], "subprocess.Popen[bytes]"]


@pytest.fixture
def start(stage: Stage, tmp_path: Path) -> Iterator[Start]:
    """Starts a worker process for a change that gets a signal at one place."""
    running: list[subprocess.Popen[bytes]] = []

    def begin(change: str, name: str, when: str, kind: str, index: int) -> subprocess.Popen[bytes]:
        fleet = stage.fleet
        argv = [PYTHON, "-m", "tests.real.worker_process", str(fleet.fleet_yaml), stage.url, str(fleet.ssh_key)]
        with (tmp_path / "worker.log").open("ab") as log:
            child = subprocess.Popen([*argv, change, name, when, kind, str(index)], cwd=ROOT, stdout=log, stderr=log)
        running.append(child)
        return child

    yield begin
    for child in running:
        if child.poll() is None:
            child.kill()
        child.wait(WAIT_S)


def taken_over(stage: Stage, change_id: str) -> e.Event | None:
    """A second worker's turn as soon as the lease of the first has ended."""
    change = stage.w.client.change(change_id)
    stage.free()
    return stage.execute(change).last


@pytest.mark.parametrize(
    ("when", "kind", "index"),
    [
        ("after", "step_started", 0),
        ("after", "step_started", 1),
        ("before", "step_done", 1),
        ("after", "gate_passed", 1),
        ("after", "proved", -1),
    ],
)
def test_a_worker_killed_between_events_is_taken_over_and_decode_restarts_once(
    stage: Stage, start: Start, when: str, kind: str, index: int
) -> None:
    change = stage.approved("decode-only")
    assert start(change.id, "SIGKILL", when, kind, index).wait(WAIT_S) == -signal.SIGKILL

    last = taken_over(stage, change.id)

    assert isinstance(last, e.Succeeded)
    assert stage.starts() == (0, 1, 0)
    assert KNOB_ENV not in stage.environ()
    started = [event for event in stage.events(change) if isinstance(event, e.Started)]
    assert [event.resumed for event in started] == [False, True]
    assert [stage.kinds(change).count(kind) for kind in ("step_done", "proved", "succeeded")] == [2, 1, 1]
    assert started[0].tokens["decode@gpu1"] < started[1].tokens["decode@gpu1"]


@pytest.mark.parametrize("kind", ["gate_failed", "undo_started"])
def test_a_worker_killed_behind_a_gate_that_failed_is_followed_by_one_that_undoes_and_says_it_once(
    stage: Stage, start: Start, kind: str
) -> None:
    stage.guard("decode", f'test -n "${KNOB_ENV}" || exit 3')
    stage.restart_by_hand("decode")
    change = stage.approved("decode-only")
    starts = stage.starts()
    assert start(change.id, "SIGKILL", "after", kind, -1).wait(WAIT_S) == -signal.SIGKILL
    assert isinstance(taken_over(stage, change.id), e.RolledBack)
    assert [stage.kinds(change).count(kind) for kind in ("gate_failed", "undo_started")] == [1, 1]
    assert stage.starts()[1] == starts[1] + 1
    assert stage.environ()[KNOB_ENV] == "512"
    assert not stage.dropin().exists()


def test_a_worker_killed_in_a_co_restart_is_taken_over_and_each_service_restarts_once(
    stage: Stage, start: Start
) -> None:
    change = stage.approved("co-restart")
    assert start(change.id, "SIGKILL", "before", "step_done", 2).wait(WAIT_S) == -signal.SIGKILL
    assert isinstance(taken_over(stage, change.id), e.Succeeded)
    assert stage.starts() == (1, 1, 1)


def test_a_worker_killed_before_it_sent_a_restart_does_not_override_a_restart_by_hand(
    stage: Stage, start: Start
) -> None:
    change = stage.approved("decode-only")
    assert start(change.id, "SIGKILL", "after", "step_started", 1).wait(WAIT_S) == -signal.SIGKILL
    stage.restart_by_hand("decode")
    last = taken_over(stage, change.id)
    assert isinstance(last, e.Held)
    assert [f.code for f in last.findings] == ["hold.other-incarnation"]
    assert stage.starts() == (0, 1, 0)


def test_a_worker_that_was_stopped_past_its_lease_does_nothing_more_when_it_wakes(stage: Stage, start: Start) -> None:
    change = stage.approved("decode-only")
    sleeper = start(change.id, "SIGSTOP", "after", "step_started", 1)
    until(lambda: "step_started" in stage.kinds(change)[-1:], "the worker does not begin")
    assert isinstance(taken_over(stage, change.id), e.Succeeded)
    version = stage.w.client.change(change.id).version

    sleeper.send_signal(signal.SIGCONT)

    assert sleeper.wait(WAIT_S) == 0
    assert stage.starts() == (0, 1, 0)
    assert stage.w.client.change(change.id).version == version
    first = next(event for event in stage.events(change) if isinstance(event, e.Started))
    with pytest.raises(HostRefused) as refused:
        stage.w.hosts.at("gpu1").restart(
            unit_name("decode"), token=first.tokens["decode@gpu1"], change=change.id, step="do-1"
        )
    assert refused.value.code == "stale-token"
    assert stage.starts() == (0, 1, 0)


def test_a_connection_that_breaks_in_a_restart_is_unknown_then_asked_and_the_restart_is_done_once(stage: Stage) -> None:
    change = stage.approved("decode-only")
    record = stage.host.manager.home / ".local/state/clawback" / f"{unit_name('decode')}.json"
    ssh = stage.host.ssh

    def cut() -> None:
        until(lambda: '"issued"' in record.read_text(), "the restart was not issued")
        ssh.drop_connections()
        ssh.delay(0)

    knife = threading.Thread(target=cut)

    def slow() -> None:
        ssh.delay(400)
        knife.start()

    stage.once("step_started", 1, slow)
    done = stage.execute(change)
    knife.join()

    assert done.state == "succeeded"
    kinds = stage.kinds(done)
    assert kinds.index("unknown") < kinds.index("succeeded")
    assert "host.step-unknown" in stage.codes(done)
    assert kinds.count("step_done") == 2
    assert stage.starts() == (0, 1, 0)


def test_a_connection_that_freezes_in_a_restart_is_given_up_and_the_host_is_asked(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.executors.systemd.CALL_S", 3.0)
    change = stage.approved("decode-only")
    record = stage.host.manager.home / ".local/state/clawback" / f"{unit_name('decode')}.json"
    ssh = stage.host.ssh

    def ice() -> None:
        until(lambda: '"issued"' in record.read_text(), "the restart was not issued")
        ssh.freeze()
        ssh.delay(0)

    cold = threading.Thread(target=ice)

    def slow() -> None:
        ssh.delay(400)
        cold.start()

    def thaw() -> None:
        ssh.freeze(False)

    stage.once("step_started", 1, slow)
    stage.once("unknown", None, thaw)
    try:
        done = stage.execute(change)
        cold.join()
    finally:
        ssh.freeze(False)
        ssh.delay(0)
    assert done.state == "succeeded"
    assert "host.step-unknown" in stage.codes(done)
    assert stage.starts() == (0, 1, 0)


def test_a_host_that_goes_away_between_two_steps_is_waited_for(stage: Stage) -> None:
    change = stage.approved("decode-only")
    ssh = stage.host.ssh

    def away() -> None:
        ssh.refuse()
        ssh.drop_connections()
        threading.Timer(1.0, ssh.refuse, (False,)).start()

    stage.once("step_done", 0, away)
    done = stage.execute(change)
    assert done.state == "succeeded"
    assert stage.starts() == (0, 1, 0)


def test_a_host_that_stays_away_in_the_middle_of_a_restart_holds_and_says_what_to_look_at(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workers.acts.ASK_AGAIN_S", (0.1, 0.2, 0.3))
    change = stage.approved("decode-only")
    ssh = stage.host.ssh
    record = stage.host.manager.home / ".local/state/clawback" / f"{unit_name('decode')}.json"

    def cut() -> None:
        until(lambda: '"issued"' in record.read_text(), "the restart was not issued")
        ssh.refuse()
        ssh.drop_connections()
        ssh.delay(0)

    knife = threading.Thread(target=cut)

    def slow() -> None:
        ssh.delay(400)
        knife.start()

    stage.once("step_started", 1, slow)
    try:
        held = stage.execute(change)
        knife.join()
    finally:
        ssh.refuse(False)
        ssh.delay(0)
    assert held.state == "held"
    assert stage.kinds(held)[-2:] == ["unknown", "held"]
    silent = stage.last(held, e.Held).findings[0]
    assert (silent.code, silent.values["instance"], silent.values["host"]) == (
        "hold.host-silent",
        "decode@gpu1",
        "gpu1",
    )
    assert stage.say(held, "retry").code == "click.ok"
    assert isinstance(stage.execute(held).last, e.Succeeded)
    assert stage.starts() == (0, 1, 0)


def test_a_unit_that_systemd_started_again_behind_our_restart_is_not_restarted_by_the_successor(
    stage: Stage, start: Start
) -> None:
    change = stage.approved("decode-only")
    assert start(change.id, "SIGKILL", "before", "step_done", 1).wait(WAIT_S) == -signal.SIGKILL
    until(lambda: stage.starts()[1] == 1, "our restart does not start it")
    stage.systemctl("kill", "--signal=SIGKILL", "--kill-whom=main", unit_name("decode"))
    until(lambda: stage.starts()[1] == 2, "systemd does not start it again")

    last = taken_over(stage, change.id)

    assert isinstance(last, e.Succeeded)
    assert stage.starts() == (0, 2, 0)
    done = [event for event in stage.events(change) if isinstance(event, e.StepDone) and event.step == "restart"]
    assert len(done) == 1
    assert done[0].before is not None
    assert KNOB_ENV not in stage.environ()


def test_a_unit_that_systemd_started_again_before_our_restart_was_sent_is_left_to_a_person(
    stage: Stage, start: Start
) -> None:
    change = stage.approved("decode-only")
    assert start(change.id, "SIGKILL", "after", "step_started", 1).wait(WAIT_S) == -signal.SIGKILL
    stage.systemctl("kill", "--signal=SIGKILL", "--kill-whom=main", unit_name("decode"))
    until(lambda: stage.starts()[1] == 1, "systemd does not start it again")

    last = taken_over(stage, change.id)

    assert isinstance(last, e.Held)
    assert [f.code for f in last.findings] == ["hold.other-incarnation"]
    assert stage.starts() == (0, 1, 0)


def test_a_host_whose_key_changes_in_the_middle_holds_the_change_at_once(stage: Stage) -> None:
    change = stage.approved("decode-only")
    ssh = stage.host.ssh
    kept = ssh._key

    def swap() -> None:
        ssh.change_host_key()
        ssh.drop_connections()

    stage.once("step_done", 0, swap)
    try:
        held = stage.execute(change)
    finally:
        ssh._key = kept
    assert held.state == "held"
    assert "host.key-refused" in stage.codes(held)
    assert stage.starts() == (0, 0, 0)
    assert stage.say(held, "undo").code == "click.ok"
    assert stage.execute(held).state == "rolled_back"
    assert not stage.dropin().exists()


def test_a_file_changed_under_the_write_holds_and_an_undo_leaves_that_file_alone(stage: Stage) -> None:
    change = stage.approved("decode-only")
    theirs = "[Service]\nNice=5\n"
    stage.once("step_started", 0, lambda: stage.write("decode", "zz-clawback.conf", theirs))
    held = stage.execute(change)
    assert held.state == "held"
    assert "hold.file-changed" in stage.codes(held)
    assert stage.say(held, "undo").code == "click.ok"
    assert stage.execute(held).state == "rolled_back"
    assert stage.dropin().read_text() == theirs
    assert stage.starts() == (0, 0, 0)


def test_what_a_host_remembers_of_another_change_of_the_same_name_is_not_taken_for_this_one(stage: Stage) -> None:
    first = stage.approved("decode-only")
    assert stage.execute(first).state == "succeeded"
    token = int(stage.w.redis.get("clawback:token") or 0)
    stage.w.redis.flushall()  # Redis was lost: names begin again, tokens do not
    stage.w.redis.set("clawback:token", token)
    stage.dropin().unlink()
    stage.systemctl("daemon-reload")
    stage.rewire(stage.document)
    again = stage.ask(RevertKnob(knob=KNOB, because="x"))
    assert again.id == first.id
    assert plan_of(again).steps
    stage.confirm(again)
    stage.once("step_started", 1, stage.host.ssh.drop_connections)
    starts = stage.starts()
    assert stage.execute(again).state == "succeeded"
    assert stage.starts()[1] == starts[1] + 1
