"""The helper that stays: many requests on one stdin, nothing remembered between them, and an end with its caller."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, cast

import pytest

from tests.workers.lab_host import HELPER, LabHost, lab_host

pytestmark = pytest.mark.real
WAIT_S = 60.0
UNIT = "sleeper.service"


@pytest.fixture(scope="module")
def host() -> Iterator[LabHost]:
    with lab_host() as booted:
        booted.unit(UNIT, "ExecStart=/usr/bin/sleep 600")
        booted.manager.systemctl("start", UNIT)
        yield booted


@pytest.fixture(autouse=True)
def nothing_remembered(host: LabHost) -> None:
    """Tokens only grow on a host, so each test begins without the last one's."""
    host.state_file(UNIT).unlink(missing_ok=True)


class Staying:
    """A helper with a pipe in and a pipe out, or with one socket for both."""

    def __init__(self, host: LabHost, *, socketpair: bool = False) -> None:
        argv = host.manager.wrap(["/usr/bin/python3", "-I", str(HELPER)])
        if socketpair:  # as OpenSSH gives it to commands
            self.wire, inner = socket.socketpair()
            self.process = subprocess.Popen(
                argv, stdin=inner.fileno(), stdout=inner.fileno(), stderr=subprocess.PIPE, bufsize=0
            )
            inner.close()
            self.stdin = self.wire.makefile("wb", buffering=0)
            self.stdout = self.wire.makefile("rb", buffering=0)
        else:
            self.process = subprocess.Popen(
                argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
            )
            self.stdin = cast("Any", self.process.stdin)
            self.stdout = cast("Any", self.process.stdout)

    def send(self, verb: str, **fields: Any) -> None:
        self.write(json.dumps({"v": 1, "verb": verb, "scope": "user", **fields}).encode() + b"\n")

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[self.stdin.write(view) :]

    def read(self) -> dict[str, Any]:
        line = b""
        while not line.endswith(b"\n"):
            assert select.select([self.stdout], [], [], WAIT_S)[0], "no answer"
            piece = self.stdout.read(65536)
            assert piece, f"the helper ended after {line!r}"
            line += piece
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, verb: str, **fields: Any) -> dict[str, Any]:
        self.send(verb, **fields)
        return self.read()

    def hello(self, **fields: Any) -> dict[str, Any]:
        return self.ask("hello", **fields)

    def waiting(self) -> None:
        """Send a long wait, and stay until the helper is in it."""
        self.send("wait", unit=UNIT, before=None, port=1, health=None, for_s=600)
        time.sleep(0.5)
        assert self.process.poll() is None

    def close(self) -> None:
        for pipe in (self.stdin, self.stdout, cast("IO[bytes]", self.process.stderr)):
            pipe.close()
        if hasattr(self, "wire"):
            self.wire.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT_S)


@contextmanager
def staying(host: LabHost, *, socketpair: bool = False) -> Iterator[Staying]:
    helper = Staying(host, socketpair=socketpair)
    try:
        yield helper
    finally:
        helper.close()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_one_process_answers_a_thousand_requests_in_order(host: LabHost) -> None:
    with staying(host) as helper:
        pid = helper.hello()["pid"]
        for number in range(1000):
            answer = helper.ask("observe", host=f"h{number}", units=[])
            assert answer["facts"]["host"] == f"h{number}"
        assert helper.hello()["pid"] == pid
        assert len(os.listdir(f"/proc/{pid}/fd")) <= 4  # noqa: PTH208 - as many files are open as at its start


def test_a_request_that_fails_does_not_end_the_process(host: LabHost) -> None:
    with staying(host) as helper:
        pid = helper.hello()["pid"]
        for line in (b"", b"{", b"[]", b'{"v": 9}', b'{"v":1,"verb":"shell","scope":"user"}', b"[" * 100_000, b"\xff"):
            helper.write(line + b"\n")
            assert helper.read()["code"] == "bad-request"
        assert helper.ask("fence", unit="../x", token=1)["code"] == "bad-request"
        assert helper.ask("restart", unit="none.service", token=1, change="C-1", step="1")["code"] == "no-such-unit"
        assert helper.hello()["pid"] == pid


def test_a_fault_of_the_helper_itself_is_neither_yes_nor_no(host: LabHost) -> None:
    with staying(host) as helper:
        helper.hello()
        # a record that no version of the helper writes
        host.done("fence", unit=UNIT, token=1)
        file = host.state_file(UNIT)
        file.write_text(json.dumps({"token": 1, "records": [{"verb": "restart"}]}), encoding="utf-8")
        answer = helper.ask("restart", unit=UNIT, token=1, change="C-1", step="1")
        assert (answer["ok"], answer["code"]) == (None, "crashed")
        assert "KeyError" in answer["message"]
        file.unlink()
        assert helper.ask("fence", unit=UNIT, token=1)["ok"] is True


def test_a_line_beyond_the_limit_is_answered_and_is_the_last(host: LabHost) -> None:
    with staying(host) as helper:
        helper.hello()
        helper.write(b" " * ((1 << 20) + 10) + b"\n")
        assert "has more than" in helper.read()["message"]
        assert helper.process.wait(WAIT_S) == 0


def test_a_token_raised_by_another_process_between_two_requests_shuts_this_one_out(host: LabHost) -> None:
    with staying(host) as helper:
        helper.hello()
        assert helper.ask("fence", unit=UNIT, token=5)["ok"] is True
        assert host.done("fence", unit=UNIT, token=6)["previous_token"] == 5
        for verb, fields in (("restart", {}), ("write", {"text": "[Service]\n", "expect_sha256": None})):
            refused = helper.ask(verb, unit=UNIT, token=5, change="C-1", step="1", **fields)
            assert (refused["code"], refused["stored"]) == ("stale-token", 6)
        assert not (host.manager.units / f"{UNIT}.d" / "zz-clawback.conf").exists()


def test_records_of_another_process_count(host: LabHost) -> None:
    with staying(host) as helper:
        helper.hello()
        token = helper.ask("fence", unit=UNIT, token=7)["token"]
        issued = host.done("restart", unit=UNIT, token=token, change="C-2", step="1")
        again = helper.ask("restart", unit=UNIT, token=token, change="C-2", step="1")
        assert (again["already"], again["before"]) == (True, issued["before"])


def test_no_lock_is_held_between_requests(host: LabHost) -> None:
    with staying(host) as helper:
        helper.hello()
        assert helper.ask("fence", unit=UNIT, token=8)["ok"] is True
        with host.state_file(UNIT).with_suffix(".json.lock").open("rb+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_the_end_of_stdin_ends_it(host: LabHost) -> None:
    with staying(host) as helper:
        helper.hello()
        helper.stdin.close()
        assert helper.process.wait(WAIT_S) == 0


def test_a_process_that_is_not_asked_ends_after_its_idle_time(host: LabHost) -> None:
    with staying(host) as helper:
        helper.hello(idle_s=1.0)
        assert helper.process.wait(WAIT_S) == 0
        assert helper.stdout.read() == b""


@pytest.mark.parametrize("socketpair", [False, True], ids=["pipes", "socket"])
def test_a_caller_that_leaves_during_a_wait_takes_it_along(host: LabHost, socketpair: bool) -> None:
    with staying(host, socketpair=socketpair) as helper:
        helper.hello()
        helper.waiting()
        if socketpair:
            helper.wire.shutdown(socket.SHUT_WR)
        else:
            helper.stdin.close()
        assert helper.process.wait(WAIT_S) == 0


def test_a_caller_that_reads_no_more_ends_the_wait_of_a_single_request_too(host: LabHost) -> None:
    with staying(host) as helper:
        helper.send("wait", unit=UNIT, before=None, port=1, health=None, for_s=600)
        helper.stdin.close()
        time.sleep(0.5)
        assert helper.process.poll() is None  # the end of stdin alone is the end of the one request
        helper.stdout.close()
        assert helper.process.wait(WAIT_S) == 0


def test_a_caller_that_leaves_while_an_endpoint_is_slow_takes_it_along(host: LabHost) -> None:
    with staying(host) as helper, socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        helper.hello()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        helper.send("observe", host="h", units=[], http=[{"id": "x", "url": url, "timeout_s": 600}])
        accepted, _ = silent.accept()
        helper.stdin.close()
        assert helper.process.wait(WAIT_S) == 0
        accepted.close()


def test_an_act_is_not_begun_for_a_caller_that_left_while_it_stood_in_line(host: LabHost) -> None:
    with staying(host) as helper:
        helper.hello()
        assert helper.ask("fence", unit=UNIT, token=9)["ok"] is True
        before = host.manager.show(UNIT, "InvocationID")
        with host.state_file(UNIT).with_suffix(".json.lock").open("rb+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            helper.send("restart", unit=UNIT, token=9, change="C-3", step="1")
            time.sleep(0.3)
            helper.stdin.close()
            assert helper.process.wait(WAIT_S) == 0
        assert host.manager.show(UNIT, "InvocationID") == before
        assert all(record["change"] != "C-3" for record in host.done("fence", unit=UNIT, token=9)["records"])


def test_half_a_request_before_the_end_is_no_request(host: LabHost) -> None:
    with staying(host) as helper:
        helper.hello()
        assert helper.ask("fence", unit=UNIT, token=1)["ok"] is True
        request = {"v": 1, "verb": "fence", "scope": "user", "unit": UNIT, "token": 10_000}
        helper.write(json.dumps(request).encode())  # whole, but its newline never came
        helper.stdin.close()
        assert helper.process.wait(WAIT_S) == 0
        assert helper.stdout.read() == b""
    assert json.loads(host.state_file(UNIT).read_text())["token"] == 1


def test_a_server_that_drips_its_answer_leaves_no_thread_behind(host: LabHost) -> None:
    with staying(host) as helper, socket.socket() as dripping:
        dripping.bind(("127.0.0.1", 0))
        dripping.listen()
        pid = helper.hello()["pid"]
        url = f"http://127.0.0.1:{dripping.getsockname()[1]}/"
        helper.send("observe", host="h", units=[], http=[{"id": "x", "url": url, "timeout_s": 0.5}])
        accepted, _ = dripping.accept()
        with accepted:
            while not select.select([helper.stdout], [], [], 0.05)[0]:
                accepted.sendall(b"H")
            assert "no complete answer" in helper.read()["http"][0]["error"]
            until(lambda: len(os.listdir(f"/proc/{pid}/task")) == 1)  # noqa: PTH208 - a count of names


def test_a_request_of_several_lines_is_read_to_its_end(host: LabHost) -> None:
    request = {"v": 1, "verb": "fence", "scope": "user", "unit": UNIT, "token": 20}
    assert json.loads(host.raw(json.dumps(request, indent=1).encode()))["token"] == 20
    assert json.loads(host.raw(json.dumps(request).encode() + b"\n"))["token"] == 20


def test_a_signal_ends_it_at_any_time(host: LabHost) -> None:
    with staying(host) as helper:
        os.kill(helper.hello()["pid"], signal.SIGTERM)
        assert helper.process.wait(WAIT_S) != 0
