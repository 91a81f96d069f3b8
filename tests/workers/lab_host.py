"""A host for tests of the host helper: a real user manager, a small engine for units, and calls of the helper."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from policies.errors import SettingsError
from sandbox.fleet.manager import UserManager
from tests.shared import ROOT, skip_or_fail

HELPER = ROOT / "workers" / "hosthelper.py"

# argv: port, seconds until it binds, seconds until health is 200, then words:
# wipe, child, wiped-child, bare-child, grandchild
ENGINE = """
import os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

port, bind_after, well_after, words = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]), sys.argv[4:]
born = time.monotonic()

def wipe():
    # what setproctitle does to the environment area, by the kernel's own numbers for it
    fields = open("/proc/self/stat", "rb").read().rpartition(b")")[2].split()
    start, end = int(fields[47]), int(fields[48])
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(start)
        memory.write(bytes(end - start))

def child(word):
    if os.fork() == 0:
        if word == "bare-child":
            os.execve("/usr/bin/sleep", ["sleep", "600"], {"PATH": "/bin"})
        if word == "wiped-child":
            wipe()
        if word == "grandchild" and os.fork() == 0:
            os.execve("/usr/bin/sleep", ["sleep", "601"], {"PATH": "/bin"})
        time.sleep(600)
        os._exit(0)

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/health")
            self.end_headers()
            return
        if self.path == "/slow":
            time.sleep(5)
        if self.path == "/drip":
            self.send_response(200)
            self.end_headers()
            for _ in range(40):
                self.wfile.write(b"x")
                time.sleep(0.25)
            return
        well = time.monotonic() - born >= well_after
        body = b"y" * 5000 if self.path == "/long" else os.environ.get("KNOB", "-").encode()
        self.send_response(200 if well else 503)
        self.end_headers()
        self.wfile.write(body)
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(201)
        self.end_headers()
        self.wfile.write(self.headers["Content-Type"].encode() + b" " + body)
    def log_message(self, *_):
        pass

for word in words:
    if word.endswith("child"):
        child(word)
if "wipe" in words:
    wipe()
time.sleep(bind_after)
ThreadingHTTPServer.allow_reuse_address = True
ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


class LabHost:
    """One booted host."""

    def __init__(self, manager: UserManager) -> None:
        self.manager = manager
        self.folder = manager.folder
        self.engine = manager.folder / "engine.py"
        self.engine.write_text(ENGINE, encoding="utf-8")

    def unit(self, name: str, service: str, *, reload: bool = True, unit: str = "") -> Path:
        """Write a unit file with these lines of [Service] and reload."""
        path = self.manager.units / name
        path.write_text(f"[Unit]\nDefaultDependencies=no\n{unit}\n[Service]\n{service}\n", encoding="utf-8")
        if reload:
            self.manager.systemctl("daemon-reload")
        return path

    def engine_line(self, port: int, *words: object) -> str:
        """An ExecStart= line of the engine."""
        return f"ExecStart=/usr/bin/python3 {self.engine} {port} {' '.join(str(w) for w in words)}"

    def raw(self, data: bytes, timeout_s: float = 60.0, extra: dict[str, str] | None = None) -> bytes:
        """Standard output of one call of the helper, which must exit 0 and say nothing else."""
        argv = self.manager.wrap(["/usr/bin/python3", "-I", str(HELPER)], extra)
        done = subprocess.run(argv, input=data, capture_output=True, timeout=timeout_s, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    def ask(self, verb: str, timeout_s: float = 60.0, **fields: Any) -> dict[str, Any]:
        """One answer of the helper."""
        request = {"v": 1, "verb": verb, "scope": "user", **fields}
        answer: dict[str, Any] = json.loads(self.raw(json.dumps(request).encode(), timeout_s))
        assert answer["v"] == 1
        return answer

    def ask_many(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Answers of one helper that stays to several requests, each with its verb."""
        answers: list[dict[str, Any]] = []
        argv = self.manager.wrap(["/usr/bin/python3", "-I", str(HELPER)])
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as helper:
            assert helper.stdin is not None
            assert helper.stdout is not None
            for fields in [{"verb": "hello"}, *requests]:
                helper.stdin.write(json.dumps({"v": 1, "scope": "user", **fields}).encode() + b"\n")
                helper.stdin.flush()
                answers.append(json.loads(helper.stdout.readline()))
        return answers[1:]

    def done(self, verb: str, **fields: Any) -> dict[str, Any]:
        """One answer that must not be a refusal."""
        answer = self.ask(verb, **fields)
        assert answer["ok"], answer
        return answer

    def refused(self, verb: str, **fields: Any) -> dict[str, Any]:
        """One answer that must be a refusal."""
        answer = self.ask(verb, **fields)
        assert answer["ok"] is False
        assert answer["message"]
        return answer

    def state_file(self, unit: str) -> Path:
        """Where the helper keeps token and records of a unit."""
        return self.manager.home / ".local/state/clawback" / f"{unit}.json"


@contextmanager
def lab_host() -> Iterator[LabHost]:
    """A booted host, ended afterwards; skips (in CI: fails) where none can be booted."""
    folder = Path(tempfile.mkdtemp(prefix="cbh-"))
    manager = UserManager(folder)
    try:
        try:
            manager.boot()
        except SettingsError as error:
            skip_or_fail(str(error))
        yield LabHost(manager)
    finally:
        manager.stop()
        shutil.rmtree(folder)
