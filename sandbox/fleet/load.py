"""Load: keeps N requests in flight through the router, across restarts, and sums up at the end.

`python -m sandbox.fleet.load --url http://127.0.0.1:PORT --concurrency N [--seconds S | --until-stdin-closes]`
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from pydantic import JsonValue

ROOT = Path(__file__).resolve().parents[2]
REQUEST_TIMEOUT_S = 120.0
BACK_OFF_S = (0.1, 0.2, 0.5)
FINISH_S = 10.0
GO = b"send\n"


class Senders:
    """The threads that send. Units: seconds."""

    def __init__(self, url: str, concurrency: int, max_tokens: int) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or "127.0.0.1"
        self._port = parts.port or 80
        self._max_tokens = max_tokens
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._latencies_s: list[float] = []
        self._tokens = 0
        self._problems: Counter[str] = Counter()
        self._began_s = time.monotonic()
        self._threads = [
            threading.Thread(target=self._send_on, args=(number,), daemon=True) for number in range(concurrency)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self, finish_s: float) -> dict[str, JsonValue]:
        """Send nothing new, wait for what is in flight and sum up."""
        self._stop.set()
        took_s = time.monotonic() - self._began_s
        with self._lock:
            tokens_in_time = self._tokens  # the rate leaves out the tail, in which ever fewer requests run
        deadline = time.monotonic() + finish_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        with self._lock:
            latencies_s = sorted(self._latencies_s)
            return {
                "seconds": round(took_s, 3),
                "concurrency": len(self._threads),
                "completed": len(latencies_s),
                "failed": sum(self._problems.values()),
                "problems": dict(self._problems.most_common(5)),
                "output_tokens": self._tokens,
                "output_tokens_per_s": round(tokens_in_time / took_s, 1) if took_s else 0.0,
                "latency_p50_s": _quantile(latencies_s, 0.5),
                "latency_p99_s": _quantile(latencies_s, 0.99),
                "unfinished": sum(thread.is_alive() for thread in self._threads),
            }

    def _send_on(self, number: int) -> None:
        misses = count = 0
        while not self._stop.is_set():
            began_s = time.monotonic()
            count += 1
            try:
                tokens = self._send(f"load {number} request {count}: tell me a story")
            except (OSError, ValueError, LookupError, TypeError, http.client.HTTPException) as error:
                misses += 1
                with self._lock:
                    self._problems[f"{type(error).__name__}: {error}"[:160]] += 1
                self._stop.wait(BACK_OFF_S[min(misses, len(BACK_OFF_S)) - 1])
                continue
            misses = 0
            with self._lock:
                self._tokens += tokens
                self._latencies_s.append(time.monotonic() - began_s)

    def _send(self, prompt: str) -> int:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=REQUEST_TIMEOUT_S)
        try:
            body = json.dumps({"model": "m", "prompt": prompt, "max_tokens": self._max_tokens})
            connection.request("POST", "/v1/completions", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            raw = answer.read()
            if answer.status != 200:
                raise ValueError(f"status {answer.status}")
            return int(json.loads(raw)["usage"]["completion_tokens"])
        finally:
            connection.close()


def _quantile(values: list[float], share: float) -> float | None:
    return round(values[min(len(values) - 1, int(share * len(values)))], 4) if values else None


class Load:
    """The load generator as a process of its own; it ends when this process ends.

    held: it starts and sends nothing before `send()`, so that its start is not waited for.
    """

    def __init__(
        self, url: str, concurrency: int, max_tokens: int = 200, finish_s: float = FINISH_S, *, held: bool = False
    ) -> None:
        self._argv = [sys.executable, "-m", "sandbox.fleet.load", f"--url={url}", f"--concurrency={concurrency}"]
        self._argv += [f"--max-tokens={max_tokens}", f"--finish-s={finish_s}", "--until-stdin-closes"]
        self._argv += ["--held"] if held else []
        self._held = held
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Load:
        """Start, and send."""
        self.start()
        self.send()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    def start(self) -> None:
        """Begin to send, or to wait until it may."""
        if self._process is None:
            self._process = subprocess.Popen(self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)

    def send(self) -> None:
        """Let a held one send."""
        if self._held and self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # it died, which is seen by what does not come
                self._process.stdin.write(GO)
                self._process.stdin.flush()

    def finish(self) -> None:
        """Send nothing new. What is in flight ends by itself, and `stop()` waits for it."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            self._process.stdin = None  # `communicate` would flush it

    def stop(self) -> dict[str, JsonValue]:
        """Stop sending; gives the summary, empty when it was not running or died."""
        if self._process is None:
            return {}
        process, self._process = self._process, None
        try:
            out, _ = process.communicate(timeout=FINISH_S + 10)
        except subprocess.TimeoutExpired:
            process.kill()
            out, _ = process.communicate()
        return json.loads(out) if out.strip() else {}


def _may_send(stream: IO[bytes], *, held: bool) -> bool:
    """Wait until a held one may send; false when it never may."""
    return not held or stream.readline() == GO


def _wait_closed(stream: IO[bytes]) -> None:
    while stream.read(65536):
        continue


def main(argv: list[str] | None = None) -> int:
    """Send until told to stop and print one JSON line."""
    parser = argparse.ArgumentParser(prog="python -m sandbox.fleet.load", description="keeps N requests in flight")
    parser.add_argument("--url", required=True, help="the router, e.g. http://127.0.0.1:30080")
    parser.add_argument("--concurrency", type=int, required=True)
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--finish-s", type=float, default=FINISH_S, help="how long requests in flight may take to end")
    parser.add_argument("--held", action="store_true", help="send only after a line on standard input")
    until = parser.add_mutually_exclusive_group()
    until.add_argument("--seconds", type=float)
    until.add_argument("--until-stdin-closes", action="store_true")
    told = parser.parse_args(argv)
    if not _may_send(sys.stdin.buffer, held=told.held):
        return 0
    senders = Senders(told.url, told.concurrency, told.max_tokens)
    try:
        if told.until_stdin_closes:
            _wait_closed(sys.stdin.buffer)
        else:
            time.sleep(told.seconds if told.seconds is not None else 10.0)
    except KeyboardInterrupt:
        pass  # as good a way to stop as any: the summary follows
    print(json.dumps(senders.stop(told.finish_s)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
