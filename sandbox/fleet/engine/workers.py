"""One worker as the router sees it: health from its own checks, a circuit breaker, requests in flight."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

from . import web
from .metrics import Metrics

SUCCESSES_TO_RETURN = 2  # Source: the gateway's default
FAILURES_TO_DROP = 2
BREAKER_FAILURES = 10  # Source: the gateway's default
BREAKER_OPEN_S = 2.0  # the gateway: 60 s
CHECK_TIMEOUT_S = 5.0
CLOSED, OPEN, HALF_OPEN = 0, 1, 2


class Worker:
    """A prefill or decode address."""

    def __init__(self, url: str, kind: str, metrics: Metrics) -> None:
        self.url = url
        self.kind = kind
        self.healthy = False
        self._metrics = metrics
        self._lock = threading.Lock()
        self._streak = 0  # checks in a row: successes > 0, failures < 0
        self._failures = 0
        self._opened_s: float | None = None
        self._active = 0
        metrics.gauge("smg_worker_health", lambda: float(self.healthy), worker=url, worker_type=kind)
        metrics.gauge("smg_worker_cb_state", lambda: float(self.breaker()), worker=url, worker_type=kind)
        metrics.gauge("smg_worker_cb_consecutive_failures", lambda: float(self._failures), worker=url, worker_type=kind)
        metrics.gauge("smg_worker_requests_active", lambda: float(self._active), worker=url, worker_type=kind)

    def watch(self, every_s: float, after_s: float) -> None:
        """Check for ever, from then on."""
        time.sleep(after_s)
        while True:
            try:
                well = web.ask("GET", f"{self.url}/health", timeout_s=CHECK_TIMEOUT_S)[0] == 200
            except OSError:
                well = False
            self._streak = max(1, self._streak + 1) if well else min(-1, self._streak - 1)
            if self._streak >= SUCCESSES_TO_RETURN:
                self.healthy = True
            elif self._streak <= -FAILURES_TO_DROP:
                self.healthy = False
            time.sleep(every_s)

    def breaker(self) -> int:
        """0 closed, 1 open, 2 half open."""
        with self._lock:
            if self._opened_s is None:
                return CLOSED
            return OPEN if time.monotonic() - self._opened_s < BREAKER_OPEN_S else HALF_OPEN

    def usable(self) -> bool:
        """May a request go there now?"""
        return self.healthy and self.breaker() != OPEN

    def failed(self) -> None:
        """A request failed."""
        with self._lock:
            self._failures += 1
            if self._failures >= BREAKER_FAILURES:
                self._opened_s = time.monotonic()

    def succeeded(self) -> None:
        """A request was answered."""
        with self._lock:
            self._failures = 0
            self._opened_s = None

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Count a request while it is there."""
        with self._lock:
            self._active += 1
        try:
            yield
        finally:
            with self._lock:
                self._active -= 1

    def show(self) -> dict[str, object]:
        """As `/workers` shows it."""
        return {
            "id": self.url,
            "url": self.url,
            "worker_type": self.kind,
            "is_healthy": self.healthy,
            "load": self._active,
            "cb_state": self.breaker(),
        }
