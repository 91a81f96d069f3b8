"""Roles of the demo fleet that misbehave as real ones do, when they are told to.

Most kinds show at the unit's next start, so that it is the change under test that meets them. Unit files, drop-ins and
helper processes are put back by `behave`.
"""

from __future__ import annotations

import shlex
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from policies.errors import SettingsError
from sandbox.fleet.units import PYTHON, unit_name

if TYPE_CHECKING:
    from sandbox.fleet.fleet import DemoFleet

OLD_VERSION = "0.5.21"
DROPIN = "50-misbehave.conf"
WAIT_S = 20.0
NEVER_S = 100_000
HOLD = "import sys, time; held = open(sys.argv[1]); time.sleep(1e6)"

# lines of [Unit], lines of [Service]
SETTINGS: dict[str, tuple[str, str]] = {
    "crash-loop": ("StartLimitIntervalSec=0", "Environment=ENGINE_EXIT_AFTER_S=0.2\nRestartSec=0.1"),
    "slow-crash-loop": (
        "StartLimitIntervalSec=10\nStartLimitBurst=5",
        "Environment=ENGINE_EXIT_AFTER_S=0.2\nRestartSec=2",
    ),
    "start-limit": (
        "StartLimitIntervalSec=60\nStartLimitBurst=2",
        "Environment=ENGINE_EXIT_AFTER_S=0.2\nRestartSec=0.1",
    ),
    # the start limit stands where systemd ignores half of it
    "notify-short": (
        "StartLimitIntervalSec=10",
        """Type=notify
Environment=ENGINE_SLOW_S=60
TimeoutStartSec=1
RestartSec=30
StartLimitIntervalSec=600
StartLimitBurst=3""",
    ),
    "slow-prefill": ("", "Environment=ENGINE_LATE=prefill ENGINE_LATE_S=3"),
    "late-prefill": ("", f"Environment=ENGINE_LATE=prefill ENGINE_LATE_S={NEVER_S}"),
}
OTHERS = ("orphan", "orphan-now", "device", "wrapper", "container", "managed", "not-reloaded")
KINDS = (*SETTINGS, *OTHERS)


@dataclass(slots=True)
class Trouble:
    """What has to be put back."""

    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    unit: str | None = None  # the unit file's text as it was


def misbehave(fleet: DemoFleet, role: str, kind: str) -> Trouble:
    """Have a role misbehave.

    Raises: SettingsError for an unknown kind.
    """
    if kind not in KINDS:
        raise SettingsError(f"'{kind}' is no misbehaviour, expected one of {', '.join(KINDS)}", hint="see KINDS")
    trouble = Trouble(unit=_unit_file(fleet, role).read_text(encoding="utf-8"))
    if kind in SETTINGS:
        unit, service = SETTINGS[kind]
        _dropin(fleet, role, f"[Unit]\n{unit}\n[Service]\n{service}\n")
    elif kind == "orphan":
        trouble.processes.append(_orphan(fleet, role))
    elif kind == "orphan-now":
        _dropin(fleet, role, "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestartSec=0.1\n")
        fleet.host(role).manager.systemctl("stop", unit_name(role))
        trouble.processes.append(_orphan(fleet, role))
        _until_answers(fleet, role)
        fleet.host(role).manager.systemctl("start", "--no-block", unit_name(role))
    elif kind == "device":
        path = device(fleet)
        path.parent.mkdir(exist_ok=True)
        path.touch()
        trouble.processes.append(_beside(fleet, role, [PYTHON, "-c", HOLD, str(path)]))
    elif kind == "wrapper":
        script = f"{_command(fleet, role)} & wait"
        _dropin(fleet, role, f"[Service]\nExecStart=\nExecStart=/bin/sh -c {shlex.quote(script)}\n")
    elif kind == "container":
        client = fleet.folder / "bin" / "docker"
        client.parent.mkdir(exist_ok=True)
        client.write_text('#!/bin/sh\nshift 3\n"$@" &\nwait\n', encoding="utf-8")
        client.chmod(0o755)
        _dropin(fleet, role, f"[Service]\nExecStart=\nExecStart={client} run --rm engine {_command(fleet, role)}\n")
    elif kind == "managed":
        _edit(fleet, role, f"# Ansible managed: do not edit\n{trouble.unit}")
        fleet.host(role).manager.systemctl("daemon-reload")
    else:
        _edit(fleet, role, f"{trouble.unit}# edited, not read again\n")
    return trouble


def behave(fleet: DemoFleet, role: str, trouble: Trouble) -> None:
    """Put everything back, and the unit with it."""
    for process in trouble.processes:
        process.kill()
        process.wait()
    manager = fleet.host(role).manager
    _dropin_path(fleet, role).unlink(missing_ok=True)
    if trouble.unit is not None:
        _edit(fleet, role, trouble.unit)
    manager.systemctl("daemon-reload")
    manager.systemctl("reset-failed", unit_name(role))
    manager.systemctl("restart", unit_name(role))
    fleet.wait_healthy()


def device(fleet: DemoFleet) -> Path:
    """The file that stands for a GPU."""
    return fleet.folder / "dev" / "nvidia0"


def _unit_file(fleet: DemoFleet, role: str) -> Path:
    return fleet.host(role).manager.units / unit_name(role)


def _edit(fleet: DemoFleet, role: str, text: str) -> None:
    _unit_file(fleet, role).write_text(text, encoding="utf-8")


def _dropin_path(fleet: DemoFleet, role: str) -> Path:
    return fleet.host(role).manager.units / f"{unit_name(role)}.d" / DROPIN


def _dropin(fleet: DemoFleet, role: str, text: str) -> None:
    path = _dropin_path(fleet, role)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    fleet.host(role).manager.systemctl("daemon-reload")


def _command(fleet: DemoFleet, role: str) -> str:
    lines = _unit_file(fleet, role).read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("ExecStart=")).removeprefix("ExecStart=")


def _orphan(fleet: DemoFleet, role: str) -> subprocess.Popen[bytes]:
    """An engine of an earlier run, outside of the unit, that takes the port as soon as nobody has it."""
    engine = ["-m", "engine", role, f"--port={fleet.ports[role]}", f"--version={OLD_VERSION}", f"--bind-s={NEVER_S}"]
    if role == "router":
        engine += [f"--prefill={fleet.url('prefill')}", f"--decode={fleet.url('decode')}"]
    return _beside(fleet, role, [PYTHON, "-s", "-B", *engine], {"PYTHONPATH": str(fleet.folder / "lib")})


def _beside(
    fleet: DemoFleet, role: str, argv: list[str], extra: dict[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """A process on the role's host, in no unit."""
    null = subprocess.DEVNULL
    wrapped = fleet.host(role).manager.wrap(argv, extra)
    return subprocess.Popen(wrapped, stdin=null, stdout=null, stderr=null, start_new_session=True)


def _until_answers(fleet: DemoFleet, role: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while fleet.status(role) != "200":
        if time.monotonic() > deadline:
            raise SettingsError(f"the orphan on the port of {role} does not answer", hint="is the port taken?")
        time.sleep(0.02)
