"""What prefill and decode have in common: states, health, metrics, server_info, drain."""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from . import children, web
from .clock import Clock
from .knobs import TARGET_CTAS, TARGET_CTAS_DEFAULT, read_int, step_factor
from .metrics import Metrics
from .options import Options
from .steps import StepLoop

HEALTH_TIMEOUT_S = 20.0  # Source: sglang's SGLANG_HEALTH_CHECK_TIMEOUT
JOB_TIMEOUT_S = 600.0
MIXED_TOKENS = 8192  # room for KV, in tokens per slot: only the ratio is shown


def notify_ready() -> None:
    """Tell the service manager that the unit is ready, when it asked to be told."""
    target = os.environ.get("NOTIFY_SOCKET", "")
    if not target:
        return
    address = "\0" + target[1:] if target.startswith("@") else target
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.sendto(b"READY=1", address)


class Engine:
    """One engine process. A role adds its routes and counts its own work."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.started_s = time.time()
        self.knob = read_int(TARGET_CTAS, TARGET_CTAS_DEFAULT)
        self.clock = Clock(options.events, options.role, os.environ.get(TARGET_CTAS))
        self.clock.tell("started", read=self.knob.value, source=self.knob.source)
        self.hold = children.spawn(list(options.children), options.role)
        self.state = "starting"
        self.stopping = threading.Event()
        self.active = 0
        self._lock = threading.Lock()
        self.metrics = Metrics(
            engine_type=options.role, model_name=options.model, tp_rank="0", pp_rank="0", moe_ep_rank="0"
        )
        step_s = options.token_s / (step_factor(self.knob.value) if options.role == "decode" else 1.0)
        self.steps = StepLoop(options.max_running, step_s, self.on_step)
        self._describe()

    def on_step(self, batch: int) -> None:
        """Count the tokens of one step."""
        raise AssertionError(f"role {self.options.role} does not count its steps ({batch})")

    def routes(self) -> web.Routes:
        """The endpoints every engine has."""
        return {
            ("GET", "/health"): self._health,
            ("GET", "/health_generate"): self._health,
            ("GET", "/metrics"): lambda _: web.Text(self.metrics.text()),
            ("GET", "/server_info"): self._server_info,
            ("GET", "/get_server_info"): self._server_info,
            ("GET", "/model_info"): lambda _: {"model_path": self.options.model, "is_generation": True},
            ("GET", "/v1/models"): lambda _: {
                "object": "list",
                "data": [{"id": self.options.model, "object": "model", "owned_by": "sglang"}],
            },
            ("GET", "/v1/loads"): self._loads,
        }

    def work(self, endpoint: str, handler: web.Handler) -> web.Handler:
        """Wrap a handler that does work: refused unless up, counted while it runs."""
        self.metrics.gauge("sglang:http_requests_active", 0.0, endpoint=endpoint, method="POST")
        self.metrics.counter("sglang:http_requests_total", endpoint=endpoint, method="POST")

        def wrapped(body: dict[str, Any]) -> object:
            with self._lock:
                if self.state != "up":
                    raise web.Reply(503, f"{self.options.role} is {self.state}")
                self.active += 1
            self.metrics.add("sglang:http_requests_active", 1, endpoint=endpoint, method="POST")
            self.metrics.add("sglang:http_requests_total", 1, endpoint=endpoint, method="POST")
            try:
                return handler(body)
            finally:
                self.metrics.add("sglang:http_requests_active", -1, endpoint=endpoint, method="POST")
                with self._lock:
                    self.active -= 1

        return wrapped

    def in_flight(self) -> int:
        """What a drain waits for."""
        return self.active

    def serve(self) -> int:
        """Boot, bind, warm up, serve until told to stop, drain. Gives the exit code."""
        if self.stopping.wait(self.options.boot_s + self.options.slow_s):
            return self._left(0)
        try:
            server = web.bind(self.options.host, self.options.port, self.routes(), self.options.bind_s)
        except OSError as error:
            print(f"cannot bind port {self.options.port}: {error}", file=sys.stderr, flush=True)
            return self._left(1)
        self.clock.tell("port_bound", port=self.options.port)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        if not self.stopping.wait(self.options.warm_s):
            self.steps.probe(HEALTH_TIMEOUT_S)
            self.state = "up"
            self.clock.tell("healthy")
            notify_ready()
            # the kernel may give the signal to any thread: only a wait that ends by itself lets its handler run here
            while not self.stopping.wait(0.05):
                continue
        self.state = "draining"
        deadline = time.monotonic() + self.options.drain_s
        while self.in_flight() and time.monotonic() < deadline:
            time.sleep(0.02)
        server.shutdown()
        server.server_close()
        return self._left(0)

    def stop(self) -> None:
        """Begin to drain; safe in a signal handler's thread."""
        self.clock.tell("sigterm", in_flight=self.active)
        self.stopping.set()

    def _left(self, code: int) -> int:
        self.clock.tell("exit", code=code)
        return code

    def _describe(self) -> None:
        gauges: dict[str, Callable[[], float]] = {
            "num_running_reqs": lambda: self.steps.running,
            "num_queue_reqs": lambda: self.steps.waiting,
            "token_usage": lambda: round(self.steps.running / max(1, self.options.max_running), 4),
            "num_used_tokens": lambda: self.steps.running * MIXED_TOKENS,
        }
        for name, value in gauges.items():
            self.metrics.gauge(f"sglang:{name}", value)
        for name in ("num_grammar_queue_reqs", "num_paused_reqs", "num_retracted_reqs"):
            self.metrics.gauge(f"sglang:{name}", 0.0)
        for name in (
            "prompt_tokens_total",
            "generation_tokens_total",
            "num_requests_total",
            "num_aborted_requests_total",
        ):
            self.metrics.counter(f"sglang:{name}")
        for name in ("queue_time_seconds", "time_to_first_token_seconds", "e2e_request_latency_seconds"):
            self.metrics.histogram(f"sglang:{name}")

    def _health(self, _: dict[str, Any]) -> object:
        time.sleep(self.options.health_floor_s)
        if self.state != "up":
            raise web.Reply(503, f"{self.options.role} is {self.state}")
        if not self.steps.probe(HEALTH_TIMEOUT_S):
            raise web.Reply(503, f"no token within {HEALTH_TIMEOUT_S:g} s")
        self.clock.tell_once("health_answered")
        return web.Text("")

    def _server_info(self, _: dict[str, Any]) -> object:
        options = self.options
        return {
            "version": options.version,
            "git_commit": options.commit,
            "disaggregation_mode": options.role,
            "model_path": options.model,
            "served_model_name": options.model,
            "host": options.host,
            "port": options.port,
            "tp_size": 1,
            "max_running_requests": options.max_running,
            "enable_metrics": True,
            "startup_time": self.started_s,
            "internal_states": [
                {
                    "env_vars": {self.knob.name: self.knob.value},
                    "env_sources": {self.knob.name: self.knob.source},
                    "max_running_requests": options.max_running,
                }
            ],
        }

    def _loads(self, _: dict[str, Any]) -> object:
        load = {
            "dp_rank": 0,
            "num_running_reqs": self.steps.running,
            "num_waiting_reqs": self.steps.waiting,
            "token_usage": round(self.steps.running / max(1, self.options.max_running), 4),
            "max_running_requests": self.options.max_running,
        }
        options = self.options
        return {
            "version": options.version,
            "accelerator": options.accelerator,
            "num_accelerators": options.accelerators,
            "dp_rank_count": 1,
            "loads": [load],
        }


def said(value: object | None) -> str:
    """The error text in a peer's JSON answer."""
    error = value.get("error") if isinstance(value, dict) else None
    return str(error.get("message")) if isinstance(error, dict) else str(value)
