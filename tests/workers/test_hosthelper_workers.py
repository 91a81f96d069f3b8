"""The helper's verb workers: one request to a router of the host, under the token of the router's unit, remembered."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.ports import free_port
from tests.workers.lab_host import LabHost, lab_host

pytestmark = pytest.mark.real
UNIT = "router.service"
BODY = {"url": "http://10.0.0.1:30001", "worker_type": "decode"}


class Router:
    """Answers 202 and keeps what it was asked."""

    def __init__(self) -> None:
        self.port = free_port()
        self.asked: list[tuple[str, str, Any]] = []
        self.status = 202
        router = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                router.asked.append((self.command, self.path, json.loads(self.rfile.read(length) or b"null")))
                self.send_response(router.status)
                self.end_headers()
                self.wfile.write(b'{"status":"accepted"}')

            def do_DELETE(self) -> None:
                self.do_POST()

        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture(scope="module")
def host() -> Iterator[LabHost]:
    with lab_host() as booted:
        booted.unit(UNIT, "ExecStart=/usr/bin/sleep 600")
        yield booted


@pytest.fixture
def router(host: LabHost) -> Iterator[Router]:
    host.state_file(UNIT).unlink(missing_ok=True)
    made = Router()
    yield made
    made.server.shutdown()
    made.server.server_close()


def step(router: Router, **more: Any) -> dict[str, Any]:
    api = f"http://127.0.0.1:{router.port}/"
    return {"unit": UNIT, "token": 5, "change": "C-1", "step": "do-0-out-0", "api": api, **more}


def test_a_worker_is_removed_and_added_and_what_was_known_of_it_is_remembered(host: LabHost, router: Router) -> None:
    note = json.dumps({"worker": "http://10.0.0.1:30001"})
    gone = host.done("workers", **step(router, remove="1282cd23-06da-4b48-8eb0-a48031128aac", note=note))
    assert (gone["status"], gone["error"], json.loads(gone["body"])) == (202, None, {"status": "accepted"})
    host.done("workers", **step(router, add=BODY, step="do-1-in"))
    assert router.asked == [
        ("DELETE", "/workers/1282cd23-06da-4b48-8eb0-a48031128aac", None),
        ("POST", "/workers", BODY),
    ]
    records = host.done("fence", unit=UNIT, token=5)["records"]
    told = [(r["verb"], r["step"], r["phase"], r["status"], r["note"]) for r in records]
    assert told == [("workers", "do-0-out-0", "done", 202, note), ("workers", "do-1-in", "done", 202, "")]


def test_a_stale_token_asks_the_router_nothing(host: LabHost, router: Router) -> None:
    host.done("fence", unit=UNIT, token=6)
    for change in ({"remove": "a-b"}, {"add": BODY}):
        assert host.refused("workers", **step(router, **change))["code"] == "stale-token"
    assert router.asked == []


def test_no_answer_and_a_refusal_of_the_router_are_told_as_they_are(host: LabHost, router: Router) -> None:
    router.status = 404
    assert host.done("workers", **step(router, remove="a-b"))["status"] == 404
    router.server.shutdown()
    router.server.server_close()
    silent = host.done("workers", **step(router, remove="a-b", step="do-2-out-0"))
    assert (silent["status"], silent["error"]) == (None, "connection refused")
    phases = [r["phase"] for r in host.done("fence", unit=UNIT, token=5)["records"]]
    assert phases == ["failed", "intended"]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"remove": "a-b", "add": BODY},
        {"remove": "../liveness"},
        {"remove": "a/b"},
        {"remove": ""},
        {"add": [BODY]},
        {"remove": "a-b", "api": "file:///etc"},
        {"remove": "a-b", "api": "http://127.0.0.1:1/ x"},
        {"remove": "a-b", "note": "x" * 20_000},
    ],
    ids=["neither", "both", "a way out", "a path", "nothing", "a list", "no http", "a blank", "a long note"],
)
def test_what_is_no_change_of_a_worker_is_refused_before_anything_is_asked(
    host: LabHost, router: Router, fields: dict[str, Any]
) -> None:
    assert host.refused("workers", **step(router, **fields))["code"] == "bad-request"
    assert (router.asked, host.state_file(UNIT).exists()) == ([], False)
