"""Nothing of the demo fleet stays: after stop, after a failed boot, after its owner is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from policies.errors import SettingsError
from sandbox.fleet.cgroup import Cgroup, own_path, unified_mount
from sandbox.fleet.fleet import DemoFleet
from sandbox.fleet.manager import UserManager
from tests.sandbox.fleet_client import booted, http, manager_booted, until
from tests.shared import ROOT, skip_or_fail

HYBRID = """29 24 0:25 / /sys/fs/cgroup rw,relatime shared:8 - tmpfs tmpfs rw,mode=755
30 29 0:26 / /sys/fs/cgroup/systemd rw,relatime shared:9 - cgroup cgroup rw,name=systemd
39 29 0:35 / /sys/fs/cgroup/unified rw,relatime shared:18 - cgroup2 cgroup2 rw"""
PURE = "30 23 0:26 / /sys/fs/cgroup rw,nosuid,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate"
OLD = "30 29 0:26 / /sys/fs/cgroup/systemd rw,relatime shared:9 - cgroup cgroup rw,name=systemd"


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def mentions(folder: Path) -> list[int]:
    """Processes with the folder in their arguments or environment, this one apart."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if os.fsencode(folder) in text and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


def test_the_cgroup2_tree_is_found_on_hybrid_and_on_pure_machines() -> None:
    assert unified_mount(HYBRID) == Path("/sys/fs/cgroup/unified")
    assert unified_mount(PURE) == Path("/sys/fs/cgroup")
    with pytest.raises(SettingsError, match="no cgroup2 tree"):
        unified_mount(OLD)
    assert own_path("12:pids:/x\n0::/user.slice/a.scope\n") == "user.slice/a.scope"


def test_a_folder_that_systemd_could_not_use_is_refused_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="too long a path"):
        UserManager(tmp_path / ("x" * 100)).boot()
    with pytest.raises(SettingsError, match="unit files give a meaning"):
        UserManager(tmp_path / "a b").boot()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.real
def test_stop_leaves_no_process_and_no_cgroup_and_may_be_called_twice(tmp_path: Path) -> None:
    with booted(lambda: DemoFleet(tmp_path, hosts=2, boot_s={"prefill": 0.1, "decode": 0.1})) as fleet:
        cgroups = [host.manager.cgroup for host in fleet.hosts.values()]
        assert fleet.layout.instances == ("prefill@gpu1", "decode@gpu2", "router@gpu1")
        pids = [pid for cgroup in cgroups if cgroup is not None for pid in cgroup.pids()]
        assert len(pids) >= 11  # two managers, three engines with two children each
        fleet.stop()
        assert not any(alive(pid) for pid in pids)
        assert mentions(tmp_path) == []
        assert not any(cgroup is not None and cgroup.path.exists() for cgroup in cgroups)


class SeenTooEarly(Cgroup):
    """A cgroup that a process enters right after it was seen empty."""

    entered: subprocess.Popen[bytes] | None = None

    def pids(self) -> list[int]:
        seen = super().pids()
        if self.entered is None:
            self.entered = subprocess.Popen(["/bin/sleep", "3600"])
            (self.path / "leaf" / "cgroup.procs").write_text(str(self.entered.pid), encoding="ascii")
        return seen


@pytest.mark.real
def test_a_process_that_enters_a_cgroup_right_after_it_was_seen_empty_ends_with_it() -> None:
    try:
        cgroup = SeenTooEarly.create(f"clawback-test-late-{os.getpid()}")
    except SettingsError as error:
        skip_or_fail(str(error))
    cgroup.child("leaf")
    cgroup.destroy()
    assert not cgroup.path.exists()
    assert cgroup.entered is not None
    assert cgroup.entered.wait(timeout=30) == -signal.SIGKILL


class HeldOutside(UserManager):
    """A host whose manager is started and does not get into its cgroup: it waits at a pipe that nobody reads."""

    def _start(self, leaf: Cgroup) -> None:
        outside = self.folder / "outside"
        outside.mkdir()
        os.mkfifo(outside / "cgroup.procs")
        super()._start(Cgroup(outside))


@pytest.mark.real
def test_a_manager_that_is_still_on_its_way_into_its_cgroup_ends_with_its_host(tmp_path: Path) -> None:
    with manager_booted(tmp_path / "ok"):
        pass
    manager = HeldOutside(tmp_path / "held")
    with pytest.raises(SettingsError, match="did not come up"):
        manager.boot(timeout_s=0.0)
    assert mentions(tmp_path / "held") == []


@pytest.mark.real
def test_a_boot_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with manager_booted(tmp_path / "ok"):
        pass
    manager = UserManager(tmp_path / "bad")
    parent = Cgroup.create(f"clawback-test-{os.getpid()}")
    parent.destroy()
    siblings = set(parent.path.parent.iterdir())
    with pytest.raises(SettingsError, match="did not come up"):
        manager.boot(timeout_s=0.0)
    assert mentions(tmp_path / "bad") == []
    ours = {path for path in set(parent.path.parent.iterdir()) - siblings if f"clawback-{os.getpid()}-" in path.name}
    assert ours == set()
    manager.stop()


@pytest.mark.real
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_outlives_the_process_that_booted_the_fleet(tmp_path: Path, number: signal.Signals) -> None:
    argv = [sys.executable, "-m", "sandbox.fleet", "--folder", str(tmp_path), "--boot-s", "0.1"]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stderr is not None
        line = owner.stdout.readline()
        if not line:
            skip_or_fail(owner.stderr.read().decode())
        told = json.loads(line)
        (cgroup,) = told["cgroups"]
        pids = Cgroup(Path(cgroup)).pids()
        assert http(f"http://127.0.0.1:{told['ports']['router']}/readiness")[0] == 200
        assert all(alive(pid) for pid in pids)
        owner.send_signal(number)
        owner.wait(timeout=30)
        until(lambda: not any(alive(pid) for pid in pids), "every process ended")
        until(lambda: not Path(cgroup).exists(), "the cgroup is gone")
        until(lambda: mentions(tmp_path) == [], "no process knows the folder")
    assert owner.returncode == (0 if number == signal.SIGTERM else -signal.SIGKILL)
