"""Counters, gauges and histograms in Prometheus text."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Union

Source = Union[float, Callable[[], float]]  # noqa: UP007 - evaluated by python 3.9
Labels = tuple[tuple[str, str], ...]

SECONDS = (0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400)


def process_start_s() -> float:
    """Unix time at which this process started, from the kernel."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    booted_s = time.time() - float(Path("/proc/uptime").read_text(encoding="ascii").split()[0])
    return booted_s + int(fields[22 - 3]) / os.sysconf("SC_CLK_TCK")


class Metrics:
    """A registry. `labels` are put on every series that is not `bare`."""

    def __init__(self, **labels: str) -> None:
        self._common: Labels = tuple(labels.items())
        self._lock = threading.Lock()
        self._kinds: dict[str, str] = {}
        self._bare: set[str] = set()
        self._values: dict[str, dict[Labels, Source]] = {}
        self._histograms: dict[str, list[float]] = {}
        self.gauge("process_start_time_seconds", process_start_s(), bare=True)

    def gauge(self, name: str, value: Source, *, bare: bool = False, **labels: str) -> None:
        """Set a gauge, or give the function that computes it at each scrape."""
        self._put("gauge", name, value, bare, labels)

    def counter(self, name: str, *, bare: bool = False, **labels: str) -> None:
        """Show a counter from 0 on."""
        self._put("counter", name, 0.0, bare, labels)

    def add(self, name: str, amount: float = 1.0, **labels: str) -> None:
        """Add to a counter or to a plain gauge."""
        key = tuple(labels.items())
        with self._lock:
            series = self._values.setdefault(name, {})
            old = series.get(key, 0.0)
            series[key] = (old() if callable(old) else old) + amount

    def value(self, name: str, **labels: str) -> float:
        """The present value of one series."""
        with self._lock:
            found: Source | None = self._values[name].get(tuple(labels.items()))
        return 0.0 if found is None else found() if callable(found) else found

    def histogram(self, name: str) -> None:
        """Show a histogram of seconds, empty at first."""
        with self._lock:
            self._kinds[name] = "histogram"
            self._histograms[name] = [0.0] * (len(SECONDS) + 2)  # buckets, +Inf, sum

    def observe(self, name: str, seconds: float) -> None:
        """Count one observation."""
        with self._lock:
            counts = self._histograms[name]
            for index, bound in enumerate(SECONDS):
                if seconds <= bound:
                    counts[index] += 1
            counts[-2] += 1
            counts[-1] += seconds

    def text(self) -> str:
        """The whole registry as Prometheus text."""
        with self._lock:
            kinds = dict(self._kinds)
            values = {name: dict(series) for name, series in self._values.items()}
            histograms = {name: list(counts) for name, counts in self._histograms.items()}
        lines: list[str] = []
        for name, kind in sorted(kinds.items()):
            lines += [f"# HELP {name} {name.rpartition(':')[2].replace('_', ' ')}", f"# TYPE {name} {kind}"]
            common = () if name in self._bare else self._common
            if kind == "histogram":
                lines += self._histogram_lines(name, histograms[name], common)
                continue
            for labels, source in values[name].items():
                number = source() if callable(source) else source
                lines.append(f"{name}{_braces(labels + common)} {_number(number)}")
        return "\n".join(lines) + "\n"

    def _put(self, kind: str, name: str, value: Source, bare: bool, labels: dict[str, str]) -> None:
        with self._lock:
            self._kinds[name] = kind
            if bare:
                self._bare.add(name)
            self._values.setdefault(name, {})[tuple(labels.items())] = value

    def _histogram_lines(self, name: str, counts: list[float], common: Labels) -> list[str]:
        bounds = [*(_number(float(bound)) for bound in SECONDS), "+Inf"]
        lines = [
            f"{name}_bucket{_braces((*common, ('le', bound)))} {_number(count)}"
            for bound, count in zip(bounds, counts)  # noqa: B905 - python 3.9 has no strict=; the sum after the buckets is left out
        ]
        return [
            *lines,
            f"{name}_sum{_braces(common)} {_number(counts[-1])}",
            f"{name}_count{_braces(common)} {_number(counts[-2])}",
        ]


def _braces(labels: Labels) -> str:
    return "{" + ",".join(f'{key}="{value}"' for key, value in sorted(labels)) + "}" if labels else ""


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
