"""A real Prometheus on the loopback: filled with recorded scrapes, or scraping for itself."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from policies.metrics.samples import Sample, Scrape
from tests.ports import free_port
from tests.shared import skip_or_fail

START_S = 60.0


class PrometheusServer:
    """Prometheus from Debian's package. `jobs`: what it scrapes, by job name, as its own file says it."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("prometheus") is None or shutil.which("promtool") is None:
            skip_or_fail("no Prometheus here (package prometheus)")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def fill(self, scrapes: Iterable[Scrape]) -> None:
        """Put samples into its database, before it starts. A series' `instance` is that of its scrape."""
        lines = [_line(sample, scrape) for scrape in scrapes for sample in scrape.samples]
        text = "\n".join((*lines, "# EOF", ""))
        (self.folder / "in.om").write_text(text)
        command = ["promtool", "tsdb", "create-blocks-from", "openmetrics"]
        done = subprocess.run(
            [*command, str(self.folder / "in.om"), str(self.folder / "data")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def start(self, jobs: Sequence[Mapping[str, object]] = ()) -> PrometheusServer:
        """Start it, and wait until it answers."""
        config = self.folder / "prometheus.yml"
        config.write_text(json.dumps({"scrape_configs": list(jobs)}))  # JSON is YAML
        self._process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={config}",
                f"--storage.tsdb.path={self.folder / 'data'}",
                "--storage.tsdb.retention.time=100y",
                f"--web.listen-address=127.0.0.1:{self.port}",
                "--log.level=error",
            ],
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "log").open("wb"),
        )
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
            self._process.terminate()
            try:
                self._process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def ask(self, client: httpx.Client, query: str, at: float) -> dict[str, Any]:
        """The JSON of an instant query."""
        found: dict[str, Any] = client.get(
            f"{self.url}/api/v1/query", params={"query": query, "time": f"{at:.3f}"}
        ).json()
        return found


def _line(sample: Sample, scrape: Scrape) -> str:
    labels = {**sample.labels, "instance": scrape.instance}
    inside = ",".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in labels.items() if value)
    value = {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}.get(repr(sample.value), repr(sample.value))
    return f"{sample.name}{{{inside}}} {value} {scrape.at if sample.at is None else sample.at:.3f}"
