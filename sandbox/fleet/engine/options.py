"""What an engine is told: each option from the command line, else the environment, else its release, else a default.

In the environment it is called `ENGINE_NAME`; a release brings its own in `engine.json` beside this package.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path

PREFIX = "ENGINE_"
TROUBLES = ("dead", "unwell", "slow")  # ends at once; stays at 503; is well, and its steps take SLOW times as long
SLOW = 100.0
NEVER_S = 100_000.0
RELEASED = Path(__file__).resolve().parents[1] / "engine.json"


@dataclass(frozen=True)
class Options:
    """Units: seconds."""

    role: str
    host: str
    port: int
    model: str
    version: str
    commit: str
    accelerator: str
    accelerators: int
    boot_s: float
    warm_s: float
    drain_s: float
    events: str
    children: tuple[str, ...]
    max_running: int
    token_s: float
    health_floor_s: float
    prefill: tuple[str, ...]
    decode: tuple[str, ...]
    check_s: float
    slow_s: float
    bind_s: float
    exit_after_s: float
    late: str
    late_s: float
    trouble: str = ""


def read(argv: list[str]) -> Options:
    """Parse; a wrong option ends the process with code 2 and a usage line."""
    parser = argparse.ArgumentParser(prog="engine", description="a stand-in for one role of a serving fleet")
    parser.add_argument("role", choices=("prefill", "decode", "router"))

    released = json.loads(RELEASED.read_text(encoding="utf-8")) if RELEASED.exists() else {}

    def option(name: str, kind: type, default: object, text: str) -> None:
        default = released.get(name, default)
        fallback = os.environ.get(PREFIX + name.upper().replace("-", "_"), str(default))
        parser.add_argument(f"--{name}", type=kind, default=fallback, help=text)

    option("host", str, "127.0.0.1", "address to listen on")
    option("port", int, 0, "TCP port there")
    option("model", str, "m", "model name")
    option("version", str, "0.5.23", "version in /server_info")
    option("commit", str, "4f2a91c77d0e", "commit of the build in /server_info")
    option("accelerator", str, "RTX PRO 6000", "accelerator in /v1/loads")
    option("accelerators", int, 1, "how many of them in /v1/loads")
    option("boot-s", float, 0.0, "seconds before the port is bound (router: before it is warm)")
    option("warm-s", float, 0.2, "seconds of /health 503 after the port is bound")
    option("drain-s", float, 5.0, "seconds given to requests in flight at SIGTERM")
    option("events", str, "", "file for one JSON line per event")
    option("children", str, "", "comma list of renamed, plain")
    option("max-running", int, 32, "requests that run at once; the others wait")
    option("token-s", float, 0.02, "seconds per step with the knob at its default")
    option("health-floor-s", float, 0.0, "seconds /health waits first; the real engine waits 1")
    option("prefill", str, "", "router: comma list of prefill URLs")
    option("decode", str, "", "router: comma list of decode URLs")
    option("check-s", float, 0.2, "router: seconds between health checks of a worker")
    option("slow-s", float, 0.0, "more seconds before the port is bound")
    option("bind-s", float, 0.0, "seconds to go on trying while somebody else has the port")
    option("exit-after-s", float, 0.0, "seconds after which it gives up; 0: never")
    option("late", str, "", "router: the kind of worker that it hears of late")
    option("late-s", float, 0.0, "router: how much later")
    option("trouble", str, "", f"what goes wrong on this host with one version: one of {', '.join(TROUBLES)}")
    option("trouble-with", str, "", "that version")
    found = parser.parse_args(argv)
    if found.trouble and found.trouble not in TROUBLES:
        parser.error(f"--trouble: '{found.trouble}' is none of {', '.join(TROUBLES)}")
    trouble = found.trouble if found.version == found.trouble_with else ""
    children = _split(found.children)
    if not set(children) <= {"renamed", "plain"}:
        parser.error(f"--children: '{found.children}' is not a comma list of renamed, plain")
    return Options(
        role=found.role,
        host=found.host,
        port=found.port,
        model=found.model,
        version=found.version,
        commit=found.commit,
        accelerator=found.accelerator,
        accelerators=found.accelerators,
        boot_s=found.boot_s,
        warm_s=NEVER_S if trouble == "unwell" else found.warm_s,
        drain_s=found.drain_s,
        events=found.events,
        children=children,
        max_running=found.max_running,
        token_s=found.token_s * (SLOW if trouble == "slow" else 1.0),
        health_floor_s=found.health_floor_s,
        prefill=_split(found.prefill),
        decode=_split(found.decode),
        check_s=found.check_s,
        slow_s=found.slow_s,
        bind_s=found.bind_s,
        exit_after_s=found.exit_after_s,
        late=found.late,
        late_s=found.late_s,
        trouble=trouble,
    )


def _split(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.split(",") if part)
