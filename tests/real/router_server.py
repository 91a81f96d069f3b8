"""The real sglang-router, and engines in front of which it stands: small, with requests that last as long as asked."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.ports import free_port
from tests.shared import skip_or_fail

WAIT_S = 30.0


class SmallEngine:
    """Answers what a router asks at a registration, and generations; its metrics tell what it has to do."""

    def __init__(self, kind: str = "unified", port: int | None = None) -> None:
        self.kind = kind
        self.port = port or free_port()
        self.health = 200
        self.running = 0
        self.tokens = 0
        self.seen: list[dict[str, Any]] = []  # bodies of generations
        self.finished = 0
        self.cut = 0
        self.silent = False  # its metrics are not there
        self.fails = False  # every generation is a 500
        self.release = threading.Event()  # generations that are to be held end with it
        self._born = time.time()
        self._lock = threading.Lock()
        engine = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                self._say(*engine.answer(self.path))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                engine.generate(self, body)

            def _say(self, status: int, text: str) -> None:
                data = text.encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, path: str) -> tuple[int, str]:
        """What is asked with GET."""
        if path == "/metrics":
            return (503, "") if self.silent else (200, self.metrics())
        known = {"/health": {}, "/server_info": {"model_path": "m"}, "/model_info": {"model_path": "m"}}
        if path not in known:
            return 404, "{}"
        return (self.health if path == "/health" else 200), json.dumps(known[path])

    def metrics(self) -> str:
        """As an engine of SGLang spells them."""
        labels = f'{{engine_type="{self.kind}",model_name="m"}}'
        queues = {
            "prefill": ("num_prefill_bootstrap_queue_reqs", "num_prefill_inflight_queue_reqs"),
            "decode": ("num_decode_prealloc_queue_reqs", "num_decode_transfer_queue_reqs"),
        }.get(self.kind, ())
        lines = [f"sglang:num_running_reqs{labels} {self.running}", f"sglang:num_queue_reqs{labels} 0"]
        lines += [f"sglang:{name}{labels} 0" for name in queues]
        lines += [f"sglang:generation_tokens_total{labels} {self.tokens}"]
        lines += [f'sglang:http_requests_active{{endpoint="/v1/completions",method="POST"}} {self.running}']
        lines += [f"process_start_time_seconds {self._born}"]
        return "\n".join(lines) + "\n"

    def generate(self, handler: Any, body: dict[str, Any]) -> None:
        """One generation; `hold` in the body: until it is released."""
        with self._lock:
            self.seen.append(body)
            self.running += 1
        try:
            if body.get("hold"):
                assert self.release.wait(WAIT_S)
            handler._say(500 if self.fails else 200, json.dumps({"choices": [{"index": 0, "text": "4"}], "usage": {}}))
            self.finished += 1
        except OSError:
            self.cut += 1
        finally:
            with self._lock:
                self.running -= 1
                self.tokens += 1

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class RealRouter:
    """One process of sglang-router."""

    def __init__(self, log: Path, *words: str) -> None:
        self.port, self.metrics_port = free_port(), free_port()
        self._log = log
        self._argv = [sys.executable, "-m", "sglang_router.launch_router", "--host", "127.0.0.1"]
        self._argv += ["--port", str(self.port), "--prometheus-host", "127.0.0.1"]
        self._argv += ["--prometheus-port", str(self.metrics_port), "--log-level", "warn", *words]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def metrics_url(self) -> str:
        return f"http://127.0.0.1:{self.metrics_port}/metrics"

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._argv, stdout=log, stderr=log)

        def up() -> bool:
            if self._process is None or self._process.poll() is not None:
                skip_or_fail(f"sglang-router does not start: {self._log.read_text()[-500:]}")
            return self.ask("GET", "/liveness")[0] == 200

        until(up, "the router does not come up")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(WAIT_S)

    def restart(self) -> None:
        self.stop()
        self.start()

    def ask(self, method: str, path: str, body: object = None, timeout_s: float = WAIT_S) -> tuple[int | None, str]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(  # the loopback
            self.url + path, data, {"Content-Type": "application/json"}, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return None, ""

    def workers(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.ask("GET", "/workers")[1])["workers"]
        return found

    def urls(self) -> set[str]:
        """Of the workers that it calls healthy."""
        return {worker["url"] for worker in self.workers() if worker["is_healthy"]}

    def generate(self, **more: object) -> tuple[int | None, str]:
        return self.ask("POST", "/v1/completions", {"model": "m", "prompt": "2+2=", **more})

    def in_background(self, n: int, **more: object) -> list[tuple[int | None, str]]:
        """So many generations at once; their answers come into the list that is given."""
        answers: list[tuple[int | None, str]] = []
        for _ in range(n):
            threading.Thread(target=lambda: answers.append(self.generate(**more)), daemon=True).start()
        return answers

    def serve(self, engines: Sequence[SmallEngine]) -> None:
        """Wait until it sends requests to all of them."""
        until(lambda: {engine.url for engine in engines} <= self.urls(), "the router does not take its workers")


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
