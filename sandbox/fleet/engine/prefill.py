"""Prefill: reads the prompt and keeps its KV until decode fetches it, once."""

from __future__ import annotations

import threading
import time
import uuid
from dataclasses import dataclass
from typing import Any

from . import openai, web
from .engine import JOB_TIMEOUT_S, Engine
from .options import Options

KV_KEEP_S = 5.0  # the real transfer engines keep it for 300 s or until a restart
ROOM_WAIT_S = 2.0  # for a KV that is about to be made
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
        self._made = threading.Condition(self._kv_lock)
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
            ("POST", "/v1/completions"): self.work("/v1/completions", lambda body: self._meet(body, chat=False)),
            ("POST", "/v1/chat/completions"): self.work(
                "/v1/chat/completions", lambda body: self._meet(body, chat=True)
            ),
            ("GET", "/kv/*"): self._give,
            ("GET", "/room/*"): self._give_late,
            ("GET", "/bootstrap"): lambda _: {"identity": self.identity, "page_size": 64, "kv_cache_dtype": "auto"},
        }

    def on_step(self, batch: int) -> None:
        """Prompt tokens are counted when a prompt is done."""

    def in_flight(self) -> int:
        """Requests, and KV that decode has not fetched yet."""
        return self.active + self._held()

    def _prefill(self, body: dict[str, Any]) -> object:
        """As the stand-in router asks: decode is asked afterwards."""
        prompt = body.get("prompt")
        if not isinstance(prompt, str):
            raise web.Reply(400, "prompt: expected a string")
        name = uuid.uuid4().hex
        tokens = self._make(name, prompt)
        return {"kv": name, "identity": self.identity, "prompt_tokens": tokens}

    def _meet(self, body: dict[str, Any], *, chat: bool) -> object:
        """As the real router asks: decode is asked at the same time and fetches the KV from the room."""
        asked = openai.read(body, chat=chat)
        if asked.meets is None:
            raise web.Reply(400, "bootstrap_room: expected one, prefill alone writes no tokens")
        tokens = self._make(asked.meets[1], asked.prompt)
        return openai.envelope(self.options.model, chat, "", {"prompt_tokens": tokens, "completion_tokens": 0})

    def _make(self, name: str, prompt: str) -> int:
        self._expire()
        tokens = count_tokens(prompt)
        job = self.steps.submit(1 + tokens // TOKENS_PER_STEP)
        if not job.done.wait(JOB_TIMEOUT_S):
            raise web.Reply(500, "prefill did not finish")
        now_s = time.monotonic()
        with self._kv_lock:
            self._kvs[name] = Kv(prompt, tokens, now_s)
            self._made.notify_all()
        self.metrics.observe("sglang:queue_time_seconds", (job.started_s or now_s) - job.asked_s)
        self.metrics.observe("sglang:time_to_first_token_seconds", now_s - job.asked_s)
        self.metrics.add("sglang:prompt_tokens_total", tokens)
        self.metrics.add("sglang:realtime_tokens_total", tokens, mode="prefill_compute")
        self.metrics.add("sglang:num_requests_total")
        self.clock.tell("request_done", tokens=tokens)
        return tokens

    def _give_late(self, body: dict[str, Any]) -> object:
        """The KV of a room, which may not have been made yet."""
        with self._made:
            self._made.wait_for(lambda: str(body["_name"]) in self._kvs, ROOM_WAIT_S)
        return self._give(body)

    def _give(self, body: dict[str, Any]) -> object:
        with self._kv_lock:
            kv = self._kvs.pop(str(body["_name"]), None)
        if kv is None:
            raise web.Reply(404, f"no such kv: {body['_name']}")
        return {"prompt": kv.prompt, "prompt_tokens": kv.tokens, "identity": self.identity}

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
