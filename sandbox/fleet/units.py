"""Unit files of the demo's engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

PYTHON = "/usr/bin/python3"
START_SLACK_S = 60.0


def unit_name(role: str) -> str:
    """`sglang-demo-ROLE.service`."""
    return f"sglang-demo-{role}.service"


def unit_text(
    role: str,
    command: Sequence[str],
    *,
    library: Path,
    log: Path,
    environment: Mapping[str, str],
    notify: bool,
    boot_s: float,
    drain_s: float,
    released: bool = False,
) -> str:
    """The unit of one engine. `library` is the folder that holds the package `engine`; `released`: it starts there."""
    variables = {"PYTHONPATH": str(library), "PYTHONUNBUFFERED": "1", **environment}
    lines = [
        "[Unit]",
        f"Description=demo {role}",
        "DefaultDependencies=no",
        "StartLimitIntervalSec=60",
        "StartLimitBurst=30",
        "",
        "[Service]",
        f"Type={'notify' if notify else 'simple'}",
        *(f'Environment="{key}={value}"' for key, value in variables.items()),
        *([f"WorkingDirectory={library}"] if released else []),
        f"ExecStart={' '.join(command)}",
        "Restart=on-failure",
        "RestartSec=1",
        f"TimeoutStartSec={boot_s + START_SLACK_S:g}",
        f"TimeoutStopSec={drain_s + 5:g}",
        f"StandardOutput=append:{log}",
        f"StandardError=append:{log}",
    ]
    return "\n".join(lines) + "\n"
