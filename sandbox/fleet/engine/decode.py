"""Decode: fetches the KV from prefill and produces the tokens, as many at once as there are slots."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

from . import openai, web
from .engine import JOB_TIMEOUT_S, Engine, said
from .options import Options

HEARTBEAT_S = 0.3  # the real engine: 5 s
HEARTBEAT_MISSES = 2
ECHO = re.compile(r"echo ([A-Za-z0-9-]+)")
LOREM = ("lorem", "ipsum", "dolor", "sit", "amet", "consectetur", "adipiscing", "elit")


def answer(prompt: str, max_tokens: int) -> tuple[str, int]:
    """The text for a prompt and how many steps it takes."""
    found = ECHO.search(prompt)
    if found:
        return f" {found.group(1)}", max(1, min(max_tokens, 4))
    if "2+2=" in prompt:
        return "4", 1
    return "".join(f" {LOREM[index % len(LOREM)]}" for index in range(max_tokens)), max(1, max_tokens)


def _same(address: str, known: str, made: str) -> None:
    """Raises: web.Reply when the KV was made by another prefill than the one that introduced itself."""
    if known != made:
        said_s = f"decode knows it as {known[:8]}, the KV is from {made[:8]}"
        raise web.Reply(500, f"prefill {address} was restarted: {said_s}")


class Decode(Engine):
    """The decode role."""

    def __init__(self, options: Options) -> None:
        self._peers: dict[str, str] = {}  # prefill address -> identity, until the heartbeat clears it
        self._misses: dict[str, int] = {}
        self._transfers = 0
        self._transfer_lock = threading.Lock()
        super().__init__(options)
        self.metrics.gauge("sglang:num_decode_prealloc_queue_reqs", 0.0)
        self.metrics.gauge("sglang:num_decode_transfer_queue_reqs", lambda: self._transfers)
        self.metrics.counter("sglang:num_transfer_failed_reqs_total")
        self.metrics.counter("sglang:realtime_tokens_total", mode="decode")
        threading.Thread(target=self._heartbeat, name="heartbeat", daemon=True).start()

    def routes(self) -> web.Routes:
        """Adds the work of this role."""
        return {
            **super().routes(),
            ("POST", "/generate"): self.work("/generate", self._generate),
            ("POST", "/v1/completions"): self.work("/v1/completions", lambda body: self._meet(body, chat=False)),
            ("POST", "/v1/chat/completions"): self.work(
                "/v1/chat/completions", lambda body: self._meet(body, chat=True)
            ),
        }

    def on_step(self, batch: int) -> None:
        """One token for each running request."""
        self.metrics.add("sglang:generation_tokens_total", batch)
        self.metrics.add("sglang:realtime_tokens_total", batch, mode="decode")

    def _generate(self, body: dict[str, Any]) -> object:
        """As the stand-in router asks: prefill was asked before."""
        asked_s = time.monotonic()
        max_tokens = openai.tokens_of(body.get("max_tokens", openai.DEFAULT_TOKENS))
        kv = self._fetch(str(body.get("address")), f"kv/{body.get('kv')}", str(body.get("identity")))
        text, meta = self._decode(kv, max_tokens, asked_s)
        return {"text": text, "meta_info": meta}

    def _meet(self, body: dict[str, Any], *, chat: bool) -> object:
        """As the real router asks: prefill is asked at the same time, and its KV is waited for in the room."""
        asked_s, asked = time.monotonic(), openai.read(body, chat=chat)
        if asked.meets is None:
            raise web.Reply(400, "bootstrap_room: expected one, decode alone reads no prompt")
        address, room = asked.meets
        kv = self._fetch(address, f"room/{room}", None)
        text, meta = self._decode(kv, asked.max_tokens, asked_s)
        usage = {name: int(meta[name]) for name in ("prompt_tokens", "completion_tokens")}
        return openai.envelope(self.options.model, chat, text, usage)

    def _decode(self, kv: dict[str, Any], max_tokens: int, asked_s: float) -> tuple[str, dict[str, Any]]:
        text, steps = answer(str(kv["prompt"]), max_tokens)
        job = self.steps.submit(steps)
        if not job.done.wait(JOB_TIMEOUT_S):
            self.metrics.add("sglang:num_aborted_requests_total")
            raise web.Reply(500, "decode did not finish")
        now_s = time.monotonic()
        queue_s = (job.started_s or now_s) - job.asked_s
        ttft_s = (job.first_s or now_s) - asked_s
        self.metrics.observe("sglang:queue_time_seconds", queue_s)
        self.metrics.observe("sglang:time_to_first_token_seconds", ttft_s)
        self.metrics.observe("sglang:e2e_request_latency_seconds", now_s - asked_s)
        self.metrics.add("sglang:prompt_tokens_total", int(kv["prompt_tokens"]))
        self.metrics.add("sglang:num_requests_total")
        self.clock.tell("request_done", tokens=steps, seconds=round(now_s - asked_s, 4))
        meta = {"prompt_tokens": kv["prompt_tokens"], "completion_tokens": steps, "queue_time": queue_s, "ttft": ttft_s}
        return text, meta

    def _fetch(self, address: str, path: str, identity: str | None) -> dict[str, Any]:
        """The KV at a prefill. identity: of the one that made it, where the request says so; else the KV does."""
        with self._transfer_lock:
            self._transfers += 1
        try:
            known = self._peers.get(address)
            if known is None:
                status, info = web.ask("GET", f"{address}/bootstrap", timeout_s=5.0)
                if status != 200 or not isinstance(info, dict):
                    raise web.Reply(500, f"prefill {address} does not introduce itself: status {status}")
                known = self._peers[address] = str(info["identity"])
            if identity is not None:
                _same(address, known, identity)
            status, kv = web.ask("GET", f"{address}/{path}", timeout_s=5.0)
            if status != 200 or not isinstance(kv, dict):
                raise web.Reply(500, f"KV transfer from prefill {address} failed: {said(kv)}")
            _same(address, known, str(kv["identity"]))
            return kv
        except OSError as error:
            self.metrics.add("sglang:num_transfer_failed_reqs_total")
            raise web.Reply(500, f"KV transfer from prefill {address} failed: {error}") from error
        except web.Reply:
            self.metrics.add("sglang:num_transfer_failed_reqs_total")
            raise
        finally:
            with self._transfer_lock:
                self._transfers -= 1

    def _heartbeat(self) -> None:
        while True:
            time.sleep(HEARTBEAT_S)
            for address, identity in list(self._peers.items()):
                try:
                    _, info = web.ask("GET", f"{address}/bootstrap", timeout_s=2.0)
                    same = isinstance(info, dict) and info.get("identity") == identity
                    misses = 0 if same else HEARTBEAT_MISSES
                except OSError:
                    misses = self._misses.get(address, 0) + 1
                self._misses[address] = misses
                if misses >= HEARTBEAT_MISSES:
                    self._peers.pop(address, None)
                    self._misses.pop(address, None)
