"""A private cgroup: found, entered by what is started in it, ended with everything inside."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from policies.errors import SettingsError

KILL_WAIT_S = 10.0
HINT = "run as root on Linux, or below a delegated cgroup: systemd-run --user --scope -p Delegate=yes -- COMMAND"


def unified_mount(mountinfo: str) -> Path:
    """Mount point of the cgroup2 tree in the text of /proc/self/mountinfo.

    Raises: SettingsError when no cgroup2 tree is mounted.
    """
    for line in mountinfo.splitlines():
        left, _, right = line.partition(" - ")
        if right.split(" ")[:1] == ["cgroup2"]:
            return Path(left.split(" ")[4])
    raise SettingsError("no cgroup2 tree is mounted here, expected /sys/fs/cgroup", hint=HINT)


def own_path(proc_cgroup: str) -> str:
    """The `0::/...` path in the text of /proc/self/cgroup, relative to the cgroup2 mount."""
    for line in proc_cgroup.splitlines():
        if line.startswith("0::"):
            return line.removeprefix("0::").lstrip("/")
    return ""


class Cgroup:
    """One cgroup of ours and everything below it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, name: str) -> Cgroup:
        """Make a new cgroup: at the top of the tree for root, below our own one otherwise.

        Raises: SettingsError when this user may not make one.
        """
        try:
            mount = unified_mount(Path("/proc/self/mountinfo").read_text(encoding="utf-8"))
            mine = mount / own_path(Path("/proc/self/cgroup").read_text(encoding="utf-8"))
        except OSError as error:
            raise SettingsError(f"cannot read this machine's cgroups: {error}", hint=HINT) from error
        parents = [mount, mine] if os.geteuid() == 0 else [mine]
        problem: OSError | None = None
        for parent in parents:
            try:
                (parent / name).mkdir()
            except OSError as error:
                problem = error
                continue
            return cls(parent / name)
        raise SettingsError(f"cannot make a cgroup below '{parents[-1]}': {problem}", hint=HINT)

    def child(self, name: str) -> Cgroup:
        """Make a cgroup below this one."""
        (self.path / name).mkdir(exist_ok=True)
        return Cgroup(self.path / name)

    def pids(self) -> list[int]:
        """Every process in this cgroup and below."""
        found: list[int] = []
        for folder, _, _ in os.walk(self.path):
            try:
                text = (Path(folder) / "cgroup.procs").read_text(encoding="ascii")
            except OSError:
                continue  # removed while we walked
            found.extend(int(line) for line in text.split())
        return found

    def kill(self) -> None:
        """End every process inside, by id, until none is left.

        Raises: SettingsError when one survives `KILL_WAIT_S`.
        """
        deadline = time.monotonic() + KILL_WAIT_S
        while pids := self.pids():
            for pid in pids:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            if time.monotonic() > deadline:
                raise SettingsError(f"processes {pids} in '{self.path}' do not end", hint="end them by hand")
            time.sleep(0.01)

    def remove(self) -> None:
        """Remove the cgroup, deepest first. Does nothing when it is gone."""
        deadline = time.monotonic() + KILL_WAIT_S
        while self.path.exists():
            busy: OSError | None = None
            for folder, _, _ in os.walk(self.path, topdown=False):
                try:
                    Path(folder).rmdir()
                except FileNotFoundError:
                    continue
                except OSError as error:  # a process that was ended is still being taken down
                    busy = error
            if busy is not None and time.monotonic() > deadline:
                raise SettingsError(f"cannot remove cgroup '{self.path}': {busy}", hint="remove it by hand")
            if busy is not None:
                time.sleep(0.01)

    def destroy(self) -> None:
        """Kill and remove."""
        self.kill()
        self.remove()
