"""Prefill: reads the prompt and keeps its KV until decode fetches it, once."""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass
from typing import Any

from . import web
from .engine import JOB_TIMEOUT_S, Engine
from .options import Options

KV_KEEP_S = 5.0  # the real transfer engines keep it for 300 s or until a restart
TOKENS_PER_STEP = 512


@dataclass(frozen=True)
class Kv:
    """What decode needs and nobody else has: the prompt."""

    prompt: str
    tokens: int
    made_s: float


def count_tokens(prompt: str) -> int:
    """Tokens of a prompt: its words, at least one."""
    return max(1, len(prompt.split()))


class Prefill(Engine):
    """The prefill role."""

    def __init__(self, options: Options) -> None:
        self.identity = uuid.uuid4().hex
        self._kvs: dict[str, Kv] = {}
        self._kv_lock = threading.Lock()
        super().__init__(options)
        self.metrics.gauge("sglang:num_prefill_bootstrap_queue_reqs", 0.0)
        self.metrics.gauge("sglang:num_prefill_inflight_queue_reqs", self._held)
        self.metrics.counter("sglang:num_bootstrap_failed_reqs_total")
        self.metrics.counter("sglang:realtime_tokens_total", mode="prefill_compute")

    def routes(self) -> web.Routes:
        """Adds the work of this role."""
        return {
            **super().routes(),
            ("POST", "/prefill"): self.work("/prefill", self._prefill),
            ("GET", "/kv/*"): self._give,
            ("GET", "/bootstrap"): lambda _: {"identity": self.identity, "page_size": 64, "kv_cache_dtype": "auto"},
        }

    def on_step(self, batch: int) -> None:
        """Prompt tokens are counted when a prompt is done."""

    def in_flight(self) -> int:
        """Requests, and KV that decode has not fetched yet."""
        return self.active + self._held()

    def _prefill(self, body: dict[str, Any]) -> object:
        prompt = body.get("prompt")
        if not isinstance(prompt, str):
            raise web.Reply(400, "prompt: expected a string")
        self._expire()
        tokens = count_tokens(prompt)
        job = self.steps.submit(1 + tokens // TOKENS_PER_STEP)
        if not job.done.wait(JOB_TIMEOUT_S):
            raise web.Reply(500, "prefill did not finish")
        now_s = time.monotonic()
        name = uuid.uuid4().hex
        with self._kv_lock:
            self._kvs[name] = Kv(prompt, tokens, now_s)
        self.metrics.observe("sglang:queue_time_seconds", (job.started_s or now_s) - job.asked_s)
        self.metrics.observe("sglang:time_to_first_token_seconds", now_s - job.asked_s)
        self.metrics.add("sglang:prompt_tokens_total", tokens)
        self.metrics.add("sglang:realtime_tokens_total", tokens, mode="prefill_compute")
        self.metrics.add("sglang:num_requests_total")
        self.clock.tell("request_done", tokens=tokens)
        return {"kv": name, "identity": self.identity, "prompt_tokens": tokens}

    def _give(self, body: dict[str, Any]) -> object:
        with self._kv_lock:
            kv = self._kvs.pop(str(body["_name"]), None)
        if kv is None:
            raise web.Reply(404, f"no such kv: {body['_name']}")
        return {"prompt": kv.prompt, "prompt_tokens": kv.tokens}

    def _held(self) -> int:
        """KV that nobody has fetched; what became too old is dropped first."""
        self._expire()
        with self._kv_lock:
            return len(self._kvs)

    def _expire(self) -> None:
        limit_s = time.monotonic() - KV_KEEP_S
        with self._kv_lock:
            for name in [name for name, kv in self._kvs.items() if kv.made_s < limit_s]:
                del self._kvs[name]
                self.metrics.add("sglang:num_bootstrap_failed_reqs_total")
