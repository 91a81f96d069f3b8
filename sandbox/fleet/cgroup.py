"""A private cgroup: found, entered by what is started in it, ended with everything inside."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Self

from policies.errors import SettingsError

END_WAIT_S = 10.0
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
    def create(cls, name: str) -> Self:
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

    def destroy(self) -> None:
        """End every process inside, by id, and remove the cgroup, deepest first. Does nothing when it is gone.

        A process that was on its way into the cgroup when it was seen empty is ended too.

        Raises: SettingsError when it is still there after `END_WAIT_S`.
        """
        deadline = time.monotonic() + END_WAIT_S
        while self.path.exists():
            pids = self.pids()
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            busy = self._remove()
            if busy is None:
                return
            if time.monotonic() > deadline:
                inside = f"processes {pids} do not end" if pids else "no process is seen in it"
                raise SettingsError(f"cannot remove cgroup '{self.path}': {busy}; {inside}", hint="remove it by hand")
            time.sleep(0.01)

    def _remove(self) -> OSError | None:
        """Remove what can be removed; what stood in the way, when something did."""
        busy: OSError | None = None
        for folder, _, _ in os.walk(self.path, topdown=False):
            try:
                Path(folder).rmdir()
            except FileNotFoundError:
                continue
            except OSError as error:  # a process is inside, or one that was ended is still being taken down
                busy = error
        return busy
