"""Decode: fetches the KV from prefill and produces the tokens, as many at once as there are slots."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

from . import web
from .engine import JOB_TIMEOUT_S, Engine, said
from .options import Options

HEARTBEAT_S = 0.3  # the real engine: 5 s
HEARTBEAT_MISSES = 2
ECHO = re.compile(r"echo ([A-Za-z0-9-]+)")
LOREM = ("lorem", "ipsum", "dolor", "sit", "amet", "consectetur", "adipiscing", "elit")
DEFAULT_TOKENS = 16


def answer(prompt: str, max_tokens: int) -> tuple[str, int]:
    """The text for a prompt and how many steps it takes."""
    found = ECHO.search(prompt)
    if found:
        return f" {found.group(1)}", max(1, min(max_tokens, 4))
    if "2+2=" in prompt:
        return "4", 1
    return "".join(f" {LOREM[index % len(LOREM)]}" for index in range(max_tokens)), max(1, max_tokens)


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
        return {**super().routes(), ("POST", "/generate"): self.work("/generate", self._generate)}

    def on_step(self, batch: int) -> None:
        """One token for each running request."""
        self.metrics.add("sglang:generation_tokens_total", batch)
        self.metrics.add("sglang:realtime_tokens_total", batch, mode="decode")

    def _generate(self, body: dict[str, Any]) -> object:
        asked_s = time.monotonic()
        max_tokens = body.get("max_tokens", DEFAULT_TOKENS)
        if not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or not 1 <= max_tokens <= 100_000:
            raise web.Reply(400, "max_tokens: expected a whole number from 1 to 100000")
        kv = self._fetch(str(body.get("address")), str(body.get("kv")), str(body.get("identity")))
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
        return {"text": text, "meta_info": meta}

    def _fetch(self, address: str, name: str, identity: str) -> dict[str, Any]:
        with self._transfer_lock:
            self._transfers += 1
        try:
            known = self._peers.get(address)
            if known is None:
                status, info = web.ask("GET", f"{address}/bootstrap", timeout_s=5.0)
                if status != 200 or not isinstance(info, dict):
                    raise web.Reply(500, f"prefill {address} does not introduce itself: status {status}")
                known = self._peers[address] = str(info["identity"])
            if known != identity:
                raise web.Reply(
                    500,
                    f"prefill {address} was restarted: decode knows it as {known[:8]}, the KV is from {identity[:8]}",
                )
            status, kv = web.ask("GET", f"{address}/kv/{name}", timeout_s=5.0)
            if status != 200 or not isinstance(kv, dict):
                raise web.Reply(500, f"KV transfer from prefill {address} failed: {said(kv)}")
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
