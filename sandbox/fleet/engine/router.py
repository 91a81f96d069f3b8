"""The router: watches its workers and leads each request through prefill and decode."""

from __future__ import annotations

import os
import sys
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from . import children, openai, web
from .clock import Clock
from .engine import notify_ready, said
from .knobs import TARGET_CTAS
from .metrics import Metrics
from .options import Options
from .workers import Worker

AGE_BOUNDS_S = (30, 60, 180, 300, 600)
REQUEST_TIMEOUT_S = 600.0


class Router:
    """The router process."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.clock = Clock(options.events, "router", os.environ.get(TARGET_CTAS))
        self.clock.tell("started")
        self.hold = children.spawn(list(options.children), "router")
        self.metrics = Metrics()
        self.stopping = threading.Event()
        self.draining = False
        self._ages: dict[str, float] = {}
        self._lock = threading.Lock()
        self._turn = 0
        self.workers = [Worker(url, "prefill", self.metrics) for url in options.prefill]
        self.workers += [Worker(url, "decode", self.metrics) for url in options.decode]
        self._describe()

    def serve(self) -> int:
        """Bind at once, serve until told to stop, drain. Gives the exit code."""
        try:
            server = web.bind(self.options.host, self.options.port, self._routes(), self.options.bind_s)
        except OSError as error:
            print(f"cannot bind port {self.options.port}: {error}", file=sys.stderr, flush=True)
            return self._left(1)
        self.clock.tell("port_bound", port=self.options.port)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        if not self.stopping.wait(self.options.boot_s):
            for worker in self.workers:
                late_s = self.options.late_s if worker.kind == self.options.late else 0.0
                threading.Thread(target=worker.watch, args=(self.options.check_s, late_s), daemon=True).start()
            self.clock.tell("healthy")
            notify_ready()
            # the kernel may give the signal to any thread: only a wait that ends by itself lets its handler run here
            while not self.stopping.wait(0.05):
                continue
        self.draining = True
        deadline = time.monotonic() + self.options.drain_s
        while self._ages and time.monotonic() < deadline:
            time.sleep(0.02)
        server.shutdown()
        server.server_close()
        return self._left(0)

    def stop(self) -> None:
        """Begin to drain."""
        self.clock.tell("sigterm", in_flight=len(self._ages))
        self.stopping.set()

    def _left(self, code: int) -> int:
        self.clock.tell("exit", code=code)
        return code

    def _routes(self) -> web.Routes:
        return {
            ("GET", "/health"): lambda _: web.Text("OK"),
            ("GET", "/liveness"): lambda _: web.Text("OK"),
            ("GET", "/readiness"): self._readiness,
            ("GET", "/workers"): lambda _: {"workers": [worker.show() for worker in self.workers]},
            ("GET", "/metrics"): lambda _: web.Text(self.metrics.text()),
            ("GET", "/v1/models"): lambda _: {
                "object": "list",
                "data": [{"id": self.options.model, "object": "model"}],
            },
            ("POST", "/v1/completions"): lambda body: self._complete(body, chat=False),
            ("POST", "/v1/chat/completions"): lambda body: self._complete(body, chat=True),
        }

    def _describe(self) -> None:
        for kind in ("prefill", "decode"):
            pool = [worker for worker in self.workers if worker.kind == kind]
            self.metrics.gauge("smg_worker_pool_size", len(pool), worker_type=kind)
        self.metrics.counter("smg_router_requests_total")
        self.metrics.counter("smg_router_request_errors_total")
        low = 0.0
        for high in (*AGE_BOUNDS_S, float("inf")):
            value = self._age_count(low, high)
            bound = "+Inf" if high == float("inf") else f"{high:g}"
            self.metrics.gauge("smg_http_inflight_request_age_count", value, gt=f"{low:g}", le=bound)
            low = high

    def _age_count(self, low_s: float, high_s: float) -> Callable[[], float]:
        def count() -> float:
            now_s = time.monotonic()
            with self._lock:
                ages = [max(1e-9, now_s - began_s) for began_s in self._ages.values()]
            return sum(1 for age_s in ages if low_s < age_s <= high_s)

        return count

    def _readiness(self, _: dict[str, Any]) -> object:
        healthy = {worker.kind for worker in self.workers if worker.healthy}
        missing = [kind for kind in ("prefill", "decode") if kind not in healthy]
        if self.draining:
            raise web.Reply(503, "router is draining")
        if missing:
            raise web.Reply(503, f"router has no healthy {' and no healthy '.join(missing)}")
        self.clock.tell_once("health_answered")
        return {"status": "ready", "healthy_workers": sum(worker.healthy for worker in self.workers)}

    def _complete(self, body: dict[str, Any], *, chat: bool) -> object:
        text, usage = self._lead(openai.read(body, chat=chat))
        return openai.envelope(self.options.model, chat, text, usage)

    def _lead(self, asked: openai.Asked) -> tuple[str, dict[str, int]]:
        """Prefill, then decode with the handle that prefill gave."""
        if self.draining:
            raise web.Reply(503, "router is draining")
        name = uuid.uuid4().hex
        with self._lock:
            self._ages[name] = time.monotonic()
        self.metrics.add("smg_router_requests_total")
        try:
            prefill, decode = self._pick("prefill"), self._pick("decode")
            handle = self._call(prefill, "/prefill", {"prompt": asked.prompt})
            work = {
                "address": prefill.url,
                "kv": handle["kv"],
                "identity": handle["identity"],
                "max_tokens": asked.max_tokens,
            }
            done = self._call(decode, "/generate", work)
        except web.Reply:
            self.metrics.add("smg_router_request_errors_total")
            raise
        finally:
            with self._lock:
                del self._ages[name]
        self.clock.tell("request_done")
        meta = done["meta_info"]
        usage = {"prompt_tokens": meta["prompt_tokens"], "completion_tokens": meta["completion_tokens"]}
        return str(done["text"]), usage

    def _pick(self, kind: str) -> Worker:
        usable = [worker for worker in self.workers if worker.kind == kind and worker.usable()]
        if not usable:
            raise web.Reply(503, f"no available {kind} worker")
        with self._lock:
            self._turn += 1
            return usable[self._turn % len(usable)]

    def _call(self, worker: Worker, path: str, body: dict[str, Any]) -> dict[str, Any]:
        with worker.busy():
            try:
                status, value = web.ask("POST", worker.url + path, body, REQUEST_TIMEOUT_S)
            except OSError as error:
                worker.failed()
                raise web.Reply(502, f"{worker.kind} {worker.url}: {error}") from error
        if status != 200 or not isinstance(value, dict):
            worker.failed()
            raise web.Reply(status if status in (400, 503) else 502, f"{worker.kind} {worker.url}: {said(value)}")
        worker.succeeded()
        return value
