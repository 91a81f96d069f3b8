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
from sandbox.fleet.releases import GOOD
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
    # one host cannot have a release that the others can; the limit is reached by none of these
    **{
        f"{trouble}-on-good": ("", f"Environment=ENGINE_TROUBLE={trouble} ENGINE_TROUBLE_WITH={GOOD}\nRestartSec=0.5")
        for trouble in ("dead", "unwell", "slow")
    },
    "late-prefill": ("", f"Environment=ENGINE_LATE=prefill ENGINE_LATE_S={NEVER_S}"),
}
OTHERS = ("orphan", "orphan-now", "device", "wrapper", "container", "managed", "not-reloaded")
KINDS = (*SETTINGS, *OTHERS)


@dataclass(slots=True)
class Trouble:
    """What has to be put back."""

    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    unit: str | None = None  # the unit file's text as it was


def misbehave(fleet: DemoFleet, where: str, kind: str) -> Trouble:
    """Have an instance misbehave.

    Raises: SettingsError for an unknown kind.
    """
    if kind not in KINDS:
        raise SettingsError(f"'{kind}' is no misbehaviour, expected one of {', '.join(KINDS)}", hint="see KINDS")
    trouble = Trouble(unit=_unit_file(fleet, where).read_text(encoding="utf-8"))
    if kind in SETTINGS:
        unit, service = SETTINGS[kind]
        _dropin(fleet, where, f"[Unit]\n{unit}\n[Service]\n{service}\n")
    elif kind == "orphan":
        trouble.processes.append(_orphan(fleet, where))
    elif kind == "orphan-now":
        _dropin(fleet, where, "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestartSec=0.1\n")
        fleet.host(where).manager.systemctl("stop", _unit(fleet, where))
        trouble.processes.append(_orphan(fleet, where))
        _until_answers(fleet, where)
        fleet.host(where).manager.systemctl("start", "--no-block", _unit(fleet, where))
    elif kind == "device":
        path = device(fleet)
        path.parent.mkdir(exist_ok=True)
        path.touch()
        trouble.processes.append(_beside(fleet, where, [PYTHON, "-c", HOLD, str(path)]))
    elif kind == "wrapper":
        script = f"{_command(fleet, where)} & wait"
        _dropin(fleet, where, f"[Service]\nExecStart=\nExecStart=/bin/sh -c {shlex.quote(script)}\n")
    elif kind == "container":
        client = fleet.folder / "bin" / "docker"
        client.parent.mkdir(exist_ok=True)
        client.write_text('#!/bin/sh\nshift 3\n"$@" &\nwait\n', encoding="utf-8")
        client.chmod(0o755)
        _dropin(fleet, where, f"[Service]\nExecStart=\nExecStart={client} run --rm engine {_command(fleet, where)}\n")
    elif kind == "managed":
        _edit(fleet, where, f"# Ansible managed: do not edit\n{trouble.unit}")
        fleet.host(where).manager.systemctl("daemon-reload")
    else:
        _edit(fleet, where, f"{trouble.unit}# edited, not read again\n")
    return trouble


def behave(fleet: DemoFleet, where: str, trouble: Trouble) -> None:
    """Put everything back, and the unit with it."""
    for process in trouble.processes:
        process.kill()
        process.wait()
    manager = fleet.host(where).manager
    _dropin_path(fleet, where).unlink(missing_ok=True)
    if trouble.unit is not None:
        _edit(fleet, where, trouble.unit)
    manager.systemctl("daemon-reload")
    manager.systemctl("reset-failed", _unit(fleet, where))
    manager.systemctl("restart", _unit(fleet, where))
    fleet.wait_healthy()


def device(fleet: DemoFleet) -> Path:
    """The file that stands for a GPU."""
    return fleet.folder / "dev" / "nvidia0"


def _unit(fleet: DemoFleet, where: str) -> str:
    return unit_name(fleet.layout.of(where)[0])


def _unit_file(fleet: DemoFleet, where: str) -> Path:
    return fleet.host(where).manager.units / _unit(fleet, where)


def _edit(fleet: DemoFleet, where: str, text: str) -> None:
    _unit_file(fleet, where).write_text(text, encoding="utf-8")


def _dropin_path(fleet: DemoFleet, where: str) -> Path:
    return fleet.host(where).manager.units / f"{_unit(fleet, where)}.d" / DROPIN


def _dropin(fleet: DemoFleet, where: str, text: str) -> None:
    path = _dropin_path(fleet, where)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    fleet.host(where).manager.systemctl("daemon-reload")


def _command(fleet: DemoFleet, where: str) -> str:
    lines = _unit_file(fleet, where).read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("ExecStart=")).removeprefix("ExecStart=")


def _orphan(fleet: DemoFleet, where: str) -> subprocess.Popen[bytes]:
    """An engine of an earlier run, outside of the unit, that takes the port as soon as nobody has it."""
    role, host = fleet.layout.of(where)
    engine = ["-m", "engine", role, f"--host={fleet.layout.addresses[host]}", f"--port={fleet.ports[role]}"]
    engine += [f"--version={OLD_VERSION}", f"--bind-s={NEVER_S}"]
    if role == "router":
        engine += [f"--prefill={fleet.url('prefill')}", f"--decode={fleet.url('decode')}"]
    return _beside(fleet, where, [PYTHON, "-s", "-B", *engine], {"PYTHONPATH": str(fleet.folder / "lib")})


def _beside(
    fleet: DemoFleet, where: str, argv: list[str], extra: dict[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """A process on the host of an instance, in no unit."""
    null = subprocess.DEVNULL
    wrapped = fleet.host(where).manager.wrap(argv, extra)
    return subprocess.Popen(wrapped, stdin=null, stdout=null, stderr=null, start_new_session=True)


def _until_answers(fleet: DemoFleet, where: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while fleet.status(where) != "200":
        if time.monotonic() > deadline:
            raise SettingsError(f"the orphan on the port of {where} does not answer", hint="is the port taken?")
        time.sleep(0.02)
