"""The guard of one cgroup: ends it when the process that owns it is gone, however that died.

`python -m sandbox.fleet.guard CGROUP` with a pipe as standard input that only the owner holds open.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from policies.errors import SettingsError
from sandbox.fleet.cgroup import Cgroup

ROOT = Path(__file__).resolve().parents[2]
READY_WAIT_S = 60.0


class Guard:
    """A guard process for `cgroup`; `release()` after the cgroup was removed in the normal way."""

    def __init__(self, cgroup: Cgroup) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "sandbox.fleet.guard", str(cgroup.path), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd="/",
            env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
            start_new_session=True,  # a Ctrl-C in the owner's terminal must not end the guard first
        )
        assert self._process.stdout is not None  # noqa: S101 - opened as a pipe above
        ready, _, _ = select.select([self._process.stdout], [], [], READY_WAIT_S)
        if not ready or self._process.stdout.read(1) != b"+":
            self.release()
            raise SettingsError("the guard of the demo's processes did not start", hint="see its message above")

    @property
    def pid(self) -> int:
        """The guard's process id."""
        return self._process.pid

    def release(self) -> None:
        """Let the guard go; it ends whatever is left in the cgroup and exits."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(timeout=READY_WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def main(path: str, owner: int) -> None:
    """Wait until the owner lets go or dies, then end the cgroup."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    waiting: list[int] = [sys.stdin.fileno()]
    with contextlib.suppress(OSError):  # already gone: the pipe reports it
        waiting.append(os.pidfd_open(owner))  # the pipe alone would be kept open by a fork of the owner
    with contextlib.suppress(OSError):  # the owner was interrupted while it waited for this
        os.write(sys.stdout.fileno(), b"+")
    while os.getppid() == owner:
        readable, _, _ = select.select(waiting, [], [], 1.0)
        if readable:
            break
    Cgroup(Path(path)).destroy()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
