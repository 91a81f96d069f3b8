"""Runs of `clawback demo` as a process of its own, with something broken at a pause; and what is left of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAM = Path(sys.executable).parent / "clawback"
LONGEST_S = 600.0


@dataclass(frozen=True, slots=True)
class Paused:
    """Where everything is while the demo waits for Enter."""

    folder: Path
    units: Path
    engines: Path
    systemctl: dict[str, str]
    ports: dict[str, int]
    pids: dict[str, int]

    def ctl(self, *words: str) -> None:
        """Run `systemctl --user` of the demo's host, as the prompt says."""
        command = ["systemctl", "--user", *words]
        subprocess.run(command, env={**os.environ, **self.systemctl}, check=True, capture_output=True, timeout=60)


@dataclass(slots=True)
class Ran:
    """What a run was and left."""

    code: int
    document: dict[str, Any]
    stderr: str
    left_processes: list[str]
    left_cgroups: list[str]
    kept: bool
    seen: dict[str, Any] = field(default_factory=dict)

    @property
    def checks(self) -> dict[str, bool]:
        """Name -> held."""
        return {check["name"]: check["ok"] for check in self.document["checks"]}

    @property
    def failed(self) -> list[str]:
        """Names of the checks that did not hold."""
        return [name for name, ok in self.checks.items() if not ok]

    @property
    def why(self) -> str:
        """What each check that did not hold says."""
        return "\n".join(f"{name}: {self.detail(name)}" for name in self.failed)

    def detail(self, name: str) -> str:
        """What a check says that was seen."""
        return next(str(check["detail"]) for check in self.document["checks"] if check["name"] == name)

    def said(self, where: str) -> str:
        """Everything that was said in the channel or in the threads."""
        return "\n".join(line["text"] for line in self.document["transcript"] if line["where"] == where)


def run(
    *options: str,
    pause_before: str | None = None,
    meanwhile: Callable[[Paused], dict[str, Any] | None] | None = None,
    signalled_at_boot: signal.Signals | None = None,
    env: dict[str, str] | None = None,
) -> Ran:
    """Run `clawback demo --once --json`; at the pause call `meanwhile`, then press Enter."""
    command = [str(PROGRAM), "demo", "--once", "--json", *options]
    command += ["--pause-before", pause_before] if pause_before else []
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(env or {})},
    )
    killer = threading.Timer(LONGEST_S, process.kill)
    killer.start()
    told: list[str] = []
    seen: dict[str, Any] = {}
    out: list[str] = []
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    reader = threading.Thread(target=lambda: out.append(process.stdout.read()))  # type: ignore[union-attr]  # a pipe
    reader.start()
    try:
        if signalled_at_boot is not None:
            _wait_for_cgroups(process, 2)  # the product's own and that of the host
            process.send_signal(signalled_at_boot)
        for line in process.stderr:
            told.append(line)
            if pause_before and line.startswith("  workspace"):
                if meanwhile is not None:
                    seen = meanwhile(_paused("".join(told))) or {}
                process.stdin.write("\n")
                process.stdin.flush()
        process.wait()
    finally:
        killer.cancel()
        if process.poll() is None:
            process.kill()
            process.wait()
        reader.join(10)
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()
    stderr = "".join(told)
    kept = re.search(r"^kept: (.+)$", stderr, re.MULTILINE)
    folder = Path(kept[1]) if kept else None
    ran = Ran(
        process.returncode,
        json.loads(out[0]),
        stderr,
        _processes(str(folder)) if folder else [],
        _cgroups(process.pid),
        folder is not None and folder.is_dir(),
        seen,
    )
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
    return ran


def _cgroups(owner: int) -> list[str]:
    # os.walk, because folders of others come and go meanwhile
    found = [Path(at) / name for at, names, _ in os.walk("/sys/fs/cgroup") for name in names]
    return [str(path) for path in found if path.name.startswith(f"clawback-{owner}-")]


def _wait_for_cgroups(process: subprocess.Popen[str], count: int) -> None:
    while process.poll() is None and len(_cgroups(process.pid)) < count:
        time.sleep(0.01)


def _paused(told: str) -> Paused:
    def value(name: str) -> str:
        found = re.search(rf"^  {name} +(.+)$", told, re.MULTILINE)
        assert found is not None, told
        return found[1]

    running = re.findall(r"(\w+) pid (\d+) port (\d+)", value("processes"))
    runtime, _, _ = value("systemctl").partition(" ")
    return Paused(
        folder=Path(value("folder")),
        units=Path(value("units")),
        engines=Path(value("engines").partition(" ")[0]),
        systemctl=dict([runtime.split("=", 1)]),
        ports={role: int(port) for role, _, port in running},
        pids={role: int(pid) for role, pid, _ in running},
    )


def _processes(word: str) -> list[str]:
    """Processes that have `word` in their command line or environment."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        try:
            text = (entry / "cmdline").read_bytes() + b"\0" + (entry / "environ").read_bytes()
        except OSError:
            continue
        if word.encode() in text:
            found.append(f"{entry.name} {text[:80]!r}")
    return found
