"""The stage of the matrix: short boots, a product that is started again when it ends, and the ways to strike it."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from pydantic import JsonValue

from sandbox.crashes.moments import Watch
from sandbox.fleet.document import KNOB, KNOB_ENV
from sandbox.fleet.units import unit_name
from sandbox.stage import Stage, StageError

Fault = Literal["act", "ask", "narrator", "bot", "valkey", "root", "stop", "away"]
FAULTS: tuple[Fault, ...] = get_args(Fault)
SAID: dict[Fault, str] = {
    "act": "the worker that acts is killed",
    "ask": "the workers that plan and answer are killed",
    "narrator": "the narrator is killed",
    "bot": "the bot is killed",
    "valkey": "Valkey is killed",
    "root": "the root of the process tree is killed and started again",
    "stop": "the worker that acts is stopped past its lease and wakes when another one is done",
    "away": "Valkey answers nobody for longer than a lease",
}
BOOT_S = {"prefill": 0.3, "decode": 0.3, "router": 0.1}
DRAIN_S = 0.2
BAKE_S = 0.4
# nobody asks for tokens here, so that the first replica is judged by what is measured without requests
ROLLING: Mapping[str, Mapping[str, JsonValue]] = {
    "decode": {
        "rolling": {"keep": 2, "canary": {"watch": "0.5s", "require": ["queue_reqs == 0"]}},
        "drain": {"router": "router", "kind": "decode", "deadline": "10s"},
    }
}
AGAIN_S = 0.5  # a service manager starts what ended after so long
AWAY_S = 12.0  # longer than a lease
LEASED = "decode@gpu1"
ROOT = Path(__file__).resolve().parents[2]
EVIDENCE = "value: 512\nbaseline: unset\nmetric: output_throughput\npoints: {C64: +12.8 %}\n"


class Rig(Stage):
    """A stage whose product may die.

    doomed: decode dies without the knob, so that taking it away is undone. away_s: how long Valkey is silent.
    """

    def __init__(self, folder: Path, *, doomed: bool = False, replicas: bool = False, away_s: float = AWAY_S) -> None:
        super().__init__(folder, replicas=replicas)
        self.doomed = doomed
        self.away_s = away_s
        self.boot_s = BOOT_S
        self.bake_s = BAKE_S
        self.rolling = ROLLING
        self._drain_s = DRAIN_S
        self.watch = Watch(folder / "data")
        self.stopped: list[int] = []
        self._due = 0.0
        self._thaw: threading.Timer | None = None

    def open(self) -> None:
        """Boot and start everything, and record the evidence that a restore stands on.

        Raises: SettingsError.
        """
        self.boot()
        self.start()
        if self.doomed:
            self._doom()
        path = self.folder / "ab.yaml"
        path.write_text(EVIDENCE, encoding="utf-8")
        done = self.clawback("evidence", "record", str(path), "--knob", KNOB, "--as", "ana")
        if done.returncode != 0:
            raise StageError(f"the evidence was not recorded: {done.stdout}{done.stderr}")

    def _doom(self) -> None:
        host = self.demo_fleet.host("decode").manager
        unit = host.units / unit_name("decode")
        lines = unit.read_text(encoding="utf-8").splitlines()
        command = next(line for line in lines if line.startswith("ExecStart=")).removeprefix("ExecStart=")
        script = shlex.quote(f'test -n "$${KNOB_ENV}" || exit 3; exec {command}')
        guard = unit.with_name(f"{unit.name}.d") / "50-guard.conf"
        guard.parent.mkdir(exist_ok=True)
        guard.write_text(f"[Service]\nRestart=no\nExecStart=\nExecStart=/bin/sh -c {script}\n", encoding="utf-8")
        host.systemctl("daemon-reload")
        host.systemctl("restart", unit.name)
        self.demo_fleet.wait_healthy()

    def environment(self) -> dict[str, str]:
        """As on every stage; the product is the one beside this file."""
        return {**super().environment(), "PYTHONPATH": str(ROOT)}

    def check_alive(self) -> None:
        """Start what ended, as a service manager does."""
        now = time.monotonic()
        if self._product is not None and self._product.poll() is not None and now >= self._due:
            self._due = now + AGAIN_S
            self.launch()

    def strike(self, fault: Fault) -> list[int]:
        """Do it; the processes that it met."""
        pids = self._aim(fault)
        if fault in {"stop", "away"}:
            self.signal(pids, signal.SIGSTOP)
            self.stopped += pids
            if fault == "away":
                self._thaw = threading.Timer(self.away_s, self.signal, (pids, signal.SIGCONT))
                self._thaw.start()
            return pids
        mine = set(self.product_pids()) if fault == "root" else set()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if fault == "root" and mine:
            self._due = time.monotonic() + AGAIN_S
        return pids

    def wake(self) -> list[int]:
        """Let those go on that were stopped."""
        thaw, self._thaw = self._thaw, None
        if thaw is not None:
            thaw.cancel()
            thaw.join()
        woken, self.stopped = self.stopped, []
        self.signal(woken, signal.SIGCONT)
        return woken

    def ready(self) -> None:
        """Wait until every role runs and the bot listens.

        Raises: StageError.
        """
        self.wait(lambda: len(self.product_pids("--parent")) >= 6, 60.0, "every role runs")
        self.wait(lambda: self.slack.sockets.connected > 0, 60.0, "the bot listens")

    def close(self) -> list[str]:
        """End everything."""
        self.wake()
        self.watch.close()
        return super().close()

    def _aim(self, fault: Fault) -> list[int]:
        if fault in {"act", "stop"}:
            holder = self.watch.holder(LEASED)
            if holder is not None:
                return [holder]
            return self.product_pids("worker", "act") if fault == "act" else []
        if fault in {"valkey", "away"}:
            try:
                return [int((self.folder / "data" / "valkey.pid").read_text(encoding="ascii"))]
            except (OSError, ValueError):
                return []
        if fault == "root":
            return [self._product.pid] if self._product is not None else []
        return self.product_pids("worker", "ask") if fault == "ask" else self.product_pids(fault)
