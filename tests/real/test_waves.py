"""Three replicas of decode on three real managers: one goes first, two boot side by side, and who fails is undone."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import JsonValue

from policies import events as e
from policies.change import Change
from policies.intents import Restart
from sandbox.fleet.document import KNOB_ENV
from sandbox.fleet.fleet import DemoFleet, Engines
from sandbox.fleet.layout import Layout
from sandbox.fleet.units import unit_name
from tests.conftest import Store
from tests.real.stage import BOOT_S, LEASE_TOKEN, PYTHON, TIMING, WAIT_S, Stage, plan_of, pool_of, until
from tests.sandbox.fleet_client import booted
from tests.shared import ROOT
from workers.drift import fleet_drift
from workers.shells.ssh import SshPool

pytestmark = pytest.mark.real
DECODES = ("decode@gpu1", "decode@gpu2", "decode@gpu3")
ON = {"prefill": ("gpu1",), "decode": ("gpu1", "gpu2", "gpu3"), "router": ("gpu1",)}
UNIT = unit_name("decode")
WATCH_S = 0.4
ROLLING: dict[str, JsonValue] = {
    "max_unavailable": 2,
    "keep": 1,
    "canary": {"watch": f"{WATCH_S}s", "require": ["queue_reqs <= 0"]},
}


class Replicas(Stage):
    """One test's turn on the three replicas; wave 1 is decode@gpu1, wave 2 the two others."""

    def __init__(self, fleet: DemoFleet, url: str, pool: SshPool) -> None:
        super().__init__(fleet, url, pool)
        self.marks = {instance: len(fleet.events(instance)) for instance in fleet.layout.instances}
        self.lives = {instance: self.life(instance) for instance in DECODES}

    def counted(self) -> tuple[int, ...]:
        """How often each decode was started since the test began."""
        return tuple(len(self.clock(instance, "started")) for instance in DECODES)

    def free(self) -> None:
        """Leases of a process that was killed are given up, as a sweep does."""
        instances = self.fleet.layout.instances

        def nobody_holds() -> bool:
            self.w.leases.give_up_dead(instances)
            return not any(self.w.leases.holder(instance) for instance in instances)

        until(nobody_holds, "the lease does not end")

    def life(self, instance: str) -> str:
        """The main process."""
        return self.fleet.show(instance, "MainPID")["MainPID"]

    def knobs(self) -> tuple[str | None, ...]:
        """The knob in the environment of each decode's main process."""
        found = []
        for instance in DECODES:
            raw = Path(f"/proc/{self.life(instance)}/environ").read_bytes().decode()
            found.append(dict(item.split("=", 1) for item in raw.split("\0") if "=" in item).get(KNOB_ENV))
        return tuple(found)

    def systemctl_on(self, instance: str, *words: str) -> None:
        self.fleet.host(instance).manager.systemctl(*words)

    def break_when_changed(self, instance: str) -> None:
        """Its engine ends at once when the knob is not what it was."""
        units = self.fleet.host(instance).manager.units
        command = next(x for x in (units / UNIT).read_text().splitlines() if x.startswith("ExecStart="))
        script = f"/bin/sh -c 'test \"$${KNOB_ENV}\" = 512 || exit 7; exec {command.removeprefix('ExecStart=')}'"
        (units / f"{UNIT}.d").mkdir(exist_ok=True)
        (units / f"{UNIT}.d" / "50-guard.conf").write_text(f"[Service]\nRestart=no\nExecStart=\nExecStart={script}\n")
        self.systemctl_on(instance, "daemon-reload")

    def told(self, change: Change) -> list[str]:
        """`step_done restart decode@gpu1`, `gate_passed health decode@gpu1`, in order; and events without instance."""
        found = []
        for event in self.events(change):
            if isinstance(event, e.StepDone):
                found.append(f"{event.part} {event.step} {event.instance}")
            elif isinstance(event, e.GatePassed):
                found.append(f"{event.part} {event.gate} {event.instance}")
            else:
                found.append(event.kind)
        return found

    def put_back(self) -> None:
        """Every decode as it was booted, and well."""
        for instance in DECODES:
            host = self.fleet.host(instance).manager
            shutil.rmtree(host.units / f"{UNIT}.d", ignore_errors=True)
            shutil.rmtree(host.home / ".local", ignore_errors=True)
            host.systemctl("daemon-reload")
            host.systemctl("reset-failed", UNIT)
            if self.life(instance) != self.lives[instance]:
                host.systemctl("restart", UNIT)
        self.fleet.wait_healthy()


@pytest.fixture(scope="module")
def fleet() -> Iterator[DemoFleet]:
    def make(folder: str) -> DemoFleet:
        engines = Engines(env={"decode": {KNOB_ENV: "512"}}, drain_s=1.0)
        hosts = Layout.replicated(ON)
        more = {"decode": {"rolling": ROLLING}}
        return DemoFleet(Path(folder) / "f", hosts=hosts, boot_s=BOOT_S, timing=TIMING, engines=engines, more=more)

    with tempfile.TemporaryDirectory(prefix="cb-") as folder, booted(lambda: make(folder)) as found:
        yield found


@pytest.fixture(scope="module")
def pool(fleet: DemoFleet) -> Iterator[SshPool]:
    with pool_of(fleet) as found:
        yield found


@pytest.fixture
def replicas(fleet: DemoFleet, pool: SshPool, store: Store) -> Iterator[Replicas]:
    store.redis.set(LEASE_TOKEN, int(time.time()))
    stage = Replicas(fleet, store.url, pool)
    yield stage
    stage.close()
    stage.put_back()


def test_one_goes_first_and_is_judged_and_the_two_others_boot_side_by_side(replicas: Replicas) -> None:
    change = replicas.execute(replicas.approved("decode-only"))
    assert change.state == "succeeded", replicas.codes(change)
    assert (replicas.counted(), replicas.knobs()) == ((1, 1, 1), (None, None, None))
    told = replicas.told(change)
    assert told.index("do environment decode@gpu1") < told.index("canary_started") < told.index("canary_passed")
    assert told.index("canary_passed") < told.index("do write decode@gpu2")
    acts = [x for x in told if x.startswith(("do write", "do restart", "do incarnation")) and "gpu1" not in x]
    assert acts == [
        "do write decode@gpu2",
        "do write decode@gpu3",
        "do restart decode@gpu2",
        "do restart decode@gpu3",
        "do incarnation decode@gpu2",
        "do incarnation decode@gpu3",
    ]
    passed = replicas.last(change, e.CanaryPassed)
    assert [(one.instance, one.condition, one.word) for one in passed.required] == [
        ("decode@gpu1", "queue_reqs <= 0", "holds")
    ]
    assert passed.required[0].n > 0
    assert {one.source for one in passed.required[0].citations} == {
        f"scrape of {replicas.fleet.url('decode@gpu1', '/metrics')} on gpu1"
    }
    began = replicas.last(change, e.CanaryStarted)
    ended = next(x for x in replicas.w.client.entries(change.id) if isinstance(x.event, e.CanaryPassed))
    assert ended.at >= began.until
    # gpu3 was issued before gpu2 was asked, and its boot is not counted twice
    starts = [replicas.clock(instance, "started")[0] for instance in DECODES[1:]]
    ready = [replicas.clock(instance, "healthy")[0] for instance in DECODES[1:]]
    assert max(starts) < min(ready)


def test_who_waited_for_a_restart_of_all_replicas_goes_on_as_it_was_confirmed(replicas: Replicas) -> None:
    first, second = (replicas.ask(Restart(scope="decode")) for _ in range(2))
    for change in (first, second):
        assert replicas.confirm(change, "decode").finding.code == "click.ok"
    assert replicas.execute(first).state == "succeeded"
    assert replicas.execute(second).state == "succeeded", replicas.kinds(second)
    moved = replicas.last(second, e.Rebased).findings
    assert [(f.values["instance"], f.values["change"]) for f in moved] == [(i, first.id) for i in DECODES]
    assert replicas.counted() == (2, 2, 2)


def test_a_replica_that_booted_beside_another_one_is_not_said_to_run_a_process_of_somebody_else(
    replicas: Replicas,
) -> None:
    for scope in (DECODES[1], "decode"):  # alone its boot is timed, beside decode@gpu1 it is not
        change = replicas.ask(Restart(scope=scope))
        assert change.planned is not None
        replicas.confirm(change, change.planned.plans[0].order)
        assert replicas.execute(change).state == "succeeded"
    assert [f.code for one in fleet_drift(replicas.w).instances for f in one.findings if "process" in f.code] == []
    replicas.systemctl_on(DECODES[1], "restart", UNIT)
    replicas.fleet.wait_healthy()
    codes = {one.instance: [f.code for f in one.findings] for one in fleet_drift(replicas.w).instances}
    assert "drift.other-process" in codes[DECODES[1]]


def step(change: Change, kind: str, instance: str) -> int:
    """Where a step of the plan stands."""
    return next(i for i, s in enumerate(plan_of(change).steps) if (s.kind, f"{s.service}@{s.host}") == (kind, instance))


@pytest.fixture
def kill(replicas: Replicas, tmp_path: Path) -> Callable[[Change, str, str, int], None]:
    """Have a worker process take a turn that ends with SIGKILL at one place, and give its leases up."""

    def run(change: Change, when: str, kind: str, index: int) -> None:
        fleet = replicas.fleet
        argv = [PYTHON, "-m", "tests.real.worker_process", str(fleet.fleet_yaml), replicas.url, str(fleet.ssh_key)]
        with (tmp_path / "worker.log").open("ab") as log:
            child = subprocess.Popen([*argv, change.id, "SIGKILL", when, kind, str(index)], cwd=ROOT, stderr=log)
        try:
            assert child.wait(WAIT_S) == -signal.SIGKILL
        finally:
            child.kill()
        replicas.free()

    return run


def test_workers_killed_in_the_watch_and_between_two_issues_of_one_stage_are_taken_over_and_nothing_is_done_twice(
    replicas: Replicas, kill: Callable[[Change, str, str, int], None]
) -> None:
    change = replicas.approved("decode-only")
    kill(change, "after", "canary_started", -1)
    assert replicas.counted() == (1, 0, 0)
    kill(change, "after", "step_done", step(change, "restart", "decode@gpu2"))
    change = replicas.execute(change)
    assert change.state == "succeeded", replicas.codes(change)
    assert (replicas.counted(), replicas.knobs()) == ((1, 1, 1), (None, None, None))
    assert [x for x in replicas.told(change) if x.startswith("do restart")] == [f"do restart {i}" for i in DECODES]
    kinds = replicas.kinds(change)
    assert (kinds.count("canary_started"), kinds.count("canary_passed")) == (1, 1)


def test_a_replica_that_fails_in_the_second_wave_has_every_replica_that_was_touched_brought_back(
    replicas: Replicas,
) -> None:
    replicas.break_when_changed("decode@gpu3")
    change = replicas.execute(replicas.approved("decode-only"))
    assert change.state == "rolled_back", replicas.codes(change)
    failed = replicas.last(change, e.GateFailed)
    assert (failed.instance, failed.part) == ("decode@gpu3", "do")
    assert replicas.knobs() == ("512", "512", "512")
    begun = replicas.last(change, e.UndoStarted).standing
    assert begun is not None
    assert [(one.word, one.value) for one in begun.stands] == [("unset", None), ("unset", None), ("down", None)]
    undone = [x for x in replicas.told(change) if x.startswith(("undo write", "undo restart"))]
    assert undone == [
        "undo write decode@gpu2",
        "undo write decode@gpu3",
        "undo restart decode@gpu2",
        "undo restart decode@gpu3",
        "undo write decode@gpu1",
        "undo restart decode@gpu1",
    ]
    assert not any(
        replicas.fleet.host(i).manager.units.joinpath(f"{UNIT}.d/zz-clawback.conf").exists() for i in DECODES
    )


def test_a_stage_is_not_begun_while_too_few_others_serve_and_nothing_of_it_is_touched(replicas: Replicas) -> None:
    change = replicas.approved("decode-only")
    replicas.once("canary_passed", None, lambda: replicas.systemctl_on("decode@gpu1", "stop", UNIT))
    change = replicas.execute(change)
    assert change.state == "held"
    count, why = replicas.last(change, e.Held).findings
    assert (count.code, count.values["serving"], count.values["keep"]) == ("hold.floor", 0, 1)
    assert (why.code, why.values["instance"]) == ("floor.not-active", "decode@gpu1")
    assert replicas.counted() == (1, 0, 0)
    replicas.systemctl_on("decode@gpu1", "start", UNIT)
    replicas.fleet.wait_healthy()
    assert replicas.say(change, "retry").code == "click.ok"
    assert replicas.execute(change).state == "succeeded"
    assert replicas.knobs() == (None, None, None)


def require(replicas: Replicas, *conditions: str, watch_s: float = WATCH_S) -> None:
    """Another fleet file for what the first replica has to show."""
    decode = replicas.document.services["decode"]
    rolling = decode.rolling.model_copy(update={"require": conditions, "watch_s": watch_s})
    services = {**replicas.document.services, "decode": decode.model_copy(update={"rolling": rolling})}
    replicas.rewire(replicas.document.model_copy(update={"services": services}))


def test_a_condition_that_does_not_hold_on_the_first_replica_is_undone_before_another_one_is_touched(
    replicas: Replicas,
) -> None:
    require(replicas, "uptime_s > 3600")
    change = replicas.execute(replicas.approved("decode-only"))
    assert change.state == "rolled_back", replicas.codes(change)
    failed = replicas.last(change, e.CanaryFailed)
    assert failed.verdict.answer == "fail"
    assert [f.code for f in failed.verdict.findings] == ["canary.not-held"]
    assert failed.required[0].n > 0
    assert (replicas.counted(), replicas.knobs()) == ((2, 0, 0), ("512", "512", "512"))


def test_a_condition_without_data_is_no_pass_and_waits_for_a_person(replicas: Replicas) -> None:
    require(replicas, "ttft_s < 2")  # nobody asked it for a token since it was started
    change = replicas.execute(replicas.approved("decode-only"))
    assert change.state == "held"
    assert replicas.last(change, e.CanaryFailed).verdict.answer == "inconclusive"
    assert "canary.not-known" in replicas.codes(change)
    assert (replicas.counted(), replicas.knobs()) == ((1, 0, 0), (None, "512", "512"))
    held = replicas.last(change, e.Held).standing
    assert held is not None
    assert held.mixed
    assert [(one.word, one.value) for one in held.stands] == [("unset", None), ("has", "512"), ("has", "512")]
    assert replicas.say(change, "undo").code == "click.ok"
    assert replicas.execute(change).state == "rolled_back"
    assert replicas.knobs() == ("512", "512", "512")
    undone = replicas.last(change, e.RolledBack).standing
    assert undone is not None
    assert (undone.mixed, undone.unsure, len(undone.stands)) == (False, False, 3)


def test_the_first_replica_that_crashes_while_it_is_watched_is_undone(replicas: Replicas) -> None:
    require(replicas, watch_s=60.0)
    change = replicas.approved("decode-only")

    def crash() -> None:
        life = replicas.life("decode@gpu1")
        replicas.systemctl_on("decode@gpu1", "kill", "--signal=KILL", UNIT)
        until(lambda: replicas.life("decode@gpu1") not in {life, "0"}, "systemd does not start it again")

    replicas.once("canary_started", None, crash)
    change = replicas.execute(change)
    assert change.state == "rolled_back", replicas.codes(change)
    assert "bake.crashed" in replicas.codes(change)
    assert replicas.knobs() == ("512", "512", "512")
