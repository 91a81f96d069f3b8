"""A real Alertmanager on the loopback, from Debian's package."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx

from tests.ports import free_port
from tests.shared import skip_or_fail

PROGRAM = "/usr/bin/prometheus-alertmanager"
START_S = 60.0


class AlertmanagerServer:
    """One process; `frozen` ones take connections and answer nothing."""

    def __init__(self, folder: Path) -> None:
        if shutil.which(PROGRAM) is None:
            skip_or_fail("no Alertmanager here (package prometheus-alertmanager)")
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> AlertmanagerServer:
        """Start it, and wait until it answers."""
        config = self.folder / "alertmanager.yml"
        config.write_text(json.dumps({"route": {"receiver": "none"}, "receivers": [{"name": "none"}]}))  # JSON is YAML
        argv = [
            PROGRAM,
            f"--config.file={config}",
            f"--storage.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
            "--cluster.listen-address=",
            "--log.level=error",
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(argv, stdout=log, stderr=log)
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            assert self._process.poll() is None, (self.folder / "log").read_text()
            try:
                if httpx.get(f"{self.url}/-/ready", timeout=1.0).status_code == 200:
                    return self
            except httpx.TransportError:
                pass
            time.sleep(0.02)
        self.stop()
        raise AssertionError((self.folder / "log").read_text())

    def stop(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
            self._process.wait(timeout=30)
            self._process = None

    def freeze(self) -> None:
        """It answers nothing until it is thawed."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """It answers again."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def silences(self) -> list[dict[str, Any]]:
        """Those that are active."""
        found: list[dict[str, Any]] = httpx.get(f"{self.url}/api/v2/silences", timeout=10.0).json()
        return [one for one in found if one["status"]["state"] == "active"]

    def alert(self, **labels: str) -> None:
        """An alert fires."""
        body = [{"labels": {"alertname": "Down", **labels}}]
        assert httpx.post(f"{self.url}/api/v2/alerts", json=body, timeout=10.0).status_code == 200

    def heard(self) -> set[str]:
        """`service` of the alerts that nothing silences."""
        params = {"active": "true", "silenced": "false", "inhibited": "false"}
        found = httpx.get(f"{self.url}/api/v2/alerts", params=params, timeout=10.0).json()
        return {one["labels"]["service"] for one in found}
