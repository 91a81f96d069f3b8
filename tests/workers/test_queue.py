"""The queue is a doorbell: it rings, it coalesces, and nothing written into Redis makes it run anything else."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rq.job import Job

from tests.conftest import Store
from workers.live import EmbeddedStore
from workers.queue import Doorbell, FixedJob
from workers.store import connect

ROOT = Path(__file__).parents[2]
Start = Callable[[str], subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[subprocess.Popen[bytes]] = []

    def run(url: str) -> subprocess.Popen[bytes]:
        running.append(
            subprocess.Popen(
                [sys.executable, "-m", "tests.workers.queue_process", url], cwd=ROOT, stderr=subprocess.PIPE
            )
        )
        return running[-1]

    yield run
    for process in running:
        if process.poll() is None:
            process.kill()
            process.communicate()


def _until(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not what():
        assert time.monotonic() < deadline, "it did not happen in 60 s"
        time.sleep(0.02)


def _notes(store: Store) -> list[str]:
    return [note.decode() if isinstance(note, bytes) else str(note) for note in store.redis.lrange("notes", 0, -1)]


def _stop(process: subprocess.Popen[bytes]) -> str:
    process.send_signal(signal.SIGTERM)
    return process.communicate(timeout=60)[1].decode()


def test_a_ring_runs_the_named_job_with_its_id_and_leaves_nothing_behind(store: Store, start: Start) -> None:
    worker = start(store.url)
    bell = Doorbell(store.redis)
    for queue in ("ask", "act", "narrate"):
        assert bell.ring(queue, "note", f"C-{queue}_1")
    _until(lambda: len(_notes(store)) == 3)
    assert sorted(_notes(store)) == ["C-act_1", "C-ask_1", "C-narrate_1"]
    assert _stop(worker) == ""
    assert worker.returncode == 0
    assert store.redis.keys("rq:job:*") == []
    assert store.redis.keys("rq:failed:*") + store.redis.keys("rq:finished:*") + store.redis.keys("rq:wip:*") == []


def test_ringing_twice_before_the_work_begins_is_ringing_once(store: Store, start: Start) -> None:
    bell = Doorbell(store.redis)
    assert [bell.ring("ask", "note", "a"), bell.ring("ask", "note", "a"), bell.ring("ask", "note", "b")] == [
        True,
        False,
        True,
    ]
    worker = start(store.url)
    _until(lambda: "b" in _notes(store))
    _stop(worker)
    assert _notes(store) == ["a", "b", "left"]


def test_a_ring_while_the_job_runs_causes_one_more_run(store: Store, start: Start) -> None:
    worker = start(store.url)
    bell = Doorbell(store.redis)
    bell.ring("act", "slow", "x")
    _until(lambda: _notes(store) == ["x begins"])
    assert bell.ring("act", "slow", "x")
    assert not bell.ring("act", "slow", "x")
    store.redis.set("go-x", 1)
    _until(lambda: _notes(store) == ["x begins", "x ends", "x begins", "x ends"])
    _stop(worker)
    assert _notes(store)[-1] == "left"
    assert len(_notes(store)) == 5


def test_a_bell_whose_worker_was_killed_can_be_rung_again(store: Store, start: Start) -> None:
    bell = Doorbell(store.redis)
    bell.ring("act", "note", "x")
    assert store.redis.lpop("rq:queue:act") == b"note-x"  # taken from the queue, and then the worker was killed
    assert store.redis.exists("rq:job:note-x")
    assert bell.ring("act", "note", "x")
    worker = start(store.url)
    _until(lambda: _notes(store) == ["x"])
    _stop(worker)


def test_a_worker_killed_in_a_job_blocks_nobody(store: Store, start: Start) -> None:
    first = start(store.url)
    bell = Doorbell(store.redis)
    bell.ring("act", "slow", "x")
    _until(lambda: _notes(store) == ["x begins"])
    first.kill()
    first.communicate()
    store.redis.set("go-x", 1)
    assert bell.ring("act", "slow", "x")
    second = start(store.url)
    _until(lambda: _notes(store) == ["x begins", "x begins", "x ends"])
    _stop(second)


def test_the_signal_to_end_lets_the_running_job_finish(store: Store, start: Start) -> None:
    worker = start(store.url)
    Doorbell(store.redis).ring("act", "slow", "x")
    _until(lambda: _notes(store) == ["x begins"])
    worker.send_signal(signal.SIGTERM)
    worker.send_signal(signal.SIGTERM)
    Doorbell(store.redis).ring("act", "note", "later")
    store.redis.set("go-x", 1)
    worker.communicate(timeout=60)
    assert worker.returncode == 0
    assert _notes(store) == ["x begins", "x ends", "left"]


def test_a_job_that_fails_is_logged_and_the_next_one_runs(store: Store, start: Start) -> None:
    worker = start(store.url)
    bell = Doorbell(store.redis)
    bell.ring("ask", "fail", "x")
    bell.ring("ask", "note", "y")
    _until(lambda: _notes(store) == ["x fails", "y"])
    errors = _stop(worker)
    assert "job fail-x of queue ask ended with an error" in errors
    assert "RuntimeError: x" in errors
    assert store.redis.keys("rq:failed:*") == []


def test_ticks_go_on_while_a_job_runs(store: Store, start: Start) -> None:
    worker = start(store.url)
    Doorbell(store.redis).ring("act", "slow", "x")
    _until(lambda: _notes(store) == ["x begins"])
    before = int(store.redis.get("ticks") or 0)
    _until(lambda: int(store.redis.get("ticks") or 0) > before + 3)
    store.redis.set("go-x", 1)
    _stop(worker)


def test_workers_go_on_after_redis_was_killed_and_came_back(
    tmp_path_factory: pytest.TempPathFactory, start: Start
) -> None:
    with EmbeddedStore(tmp_path_factory.mktemp("v")) as server:
        client = connect(server.url)
        store = Store(server.url, client, server)
        worker = start(server.url)
        bell = Doorbell(client)
        bell.ring("ask", "note", "a")
        _until(lambda: _notes(store) == ["a"])
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
        _until(lambda: not server.alive)
        time.sleep(0.5)
        server.revive()
        bell.ring("ask", "note", "b")
        _until(lambda: _notes(store) == ["a", "b"])
        _stop(worker)
        client.close()


def test_a_worker_without_redis_ends_on_the_signal(tmp_path_factory: pytest.TempPathFactory, start: Start) -> None:
    with EmbeddedStore(tmp_path_factory.mktemp("v")) as server:
        client = connect(server.url)
        worker = start(server.url)
        _until(lambda: client.get("ticks"))
        client.close()
    worker.send_signal(signal.SIGTERM)
    worker.communicate(timeout=60)
    assert worker.returncode is not None


@pytest.mark.parametrize(
    ("queue", "name", "item"),
    [
        ("default", "note", "x"),
        ("ask", "os.system", "x"),
        ("ask", "note", "a b"),
        ("ask", "note", ""),
        ("ask", "note", "x:y"),
        ("ask", "note", "x\n"),
        ("ask", "note", "x" * 97),
        ("ask", "NOTE", "x"),
    ],
)
def test_a_ring_with_anything_but_plain_names_is_refused(store: Store, queue: str, name: str, item: str) -> None:
    with pytest.raises(ValueError, match="expected a known queue"):
        Doorbell(store.redis).ring(queue, name, item)
    assert store.redis.keys("rq:*") == []


class Touch:
    """Unpickled, it runs a command."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return (os.system, (f"touch {self.path}",))


def _forgeries(path: str) -> dict[str, dict[str, bytes | str]]:
    command = f"touch {path}"

    def packed(*call: object) -> bytes:
        return zlib.compress(json.dumps(call).encode())

    good = packed("note", None, ["ok"], {})
    pickled = pickle.dumps(("note", None, (Touch(path),), {}))
    return {
        "function": {"data": packed("os.system", None, [command], {})},
        "function-uncompressed": {"data": json.dumps(["os.system", None, [command], {}])},
        "function-in-table-of-rq": {"data": packed("rq.job.requeue_job", None, ["x"], {})},
        "instance": {"data": packed("system", "os", [command], {})},
        "method-of-table": {"data": packed("note.__globals__", None, ["x"], {})},
        "keyword-arguments": {"data": packed("note", None, ["x"], {"command": command})},
        "two-arguments": {"data": packed("note", None, ["x", command], {})},
        "argument-that-is-no-id": {"data": packed("note", None, [f"$({command})"], {})},
        "pickle": {"data": zlib.compress(pickled)},
        "pickle-uncompressed": {"data": pickled},
        "nonsense": {"data": b"\x00\xff"},
        "empty": {"data": b""},
        "no-data": {"origin": "ask"},
        "bomb": {"data": zlib.compress(b"[" + b" " * 50_000_000 + b"]", 9)},
        "deep": {"data": zlib.compress(b"[" * 900)},
        "success-callback": {"data": good, "success_callback_name": "os.system", "success_callback_timeout": "9"},
        "failure-callback": {
            "data": packed("fail", None, ["ok"], {}),
            "failure_callback_name": "os.system",
            "failure_callback_timeout": "9",
        },
        "stopped-callback": {"data": good, "stopped_callback_name": "os.system", "status": "stopped"},
        "bad-callback-timeout": {"data": good, "success_callback_timeout": "soon"},
        "pickled-meta": {"data": good, "meta": pickle.dumps(Touch(path))},
        "pickled-result": {"data": good, "result": pickle.dumps(Touch(path))},
        "bad-status": {"data": good, "status": "owned"},
        "bad-dates": {"data": good, "created_at": "yesterday", "enqueued_at": "x"},
        "dependencies": {"data": good, "dependency_ids": '["function"]', "allow_dependency_failures": "1"},
        "retries": {"data": packed("fail", None, ["ok"], {}), "retries_left": "9", "retry_intervals": "[0]"},
        "repeats": {"data": good, "repeats_left": "9", "repeat_intervals": "[0]"},
        "group": {"data": good, "group_id": "g", "rate_limit_key": "k", "rate_limit_concurrency": "1"},
        "timeout": {"data": good, "timeout": "import os"},
        "webhook": {
            "data": good,
            "webhooks": json.dumps([{"url": "http://127.0.0.1:9/x", "job_status": "finished", "method": "GET"}]),
        },
    }


def _forge(store: Store, name: str, fields: dict[str, bytes | str]) -> None:
    store.redis.hset(f"rq:job:{name}", items=[part for pair in fields.items() for part in pair])


def test_no_forged_job_runs_anything_but_the_table(store: Store, start: Start, tmp_path: Path) -> None:
    proof = tmp_path / "owned"
    for name, fields in _forgeries(str(proof)).items():
        _forge(store, name, fields)
        store.redis.sadd(f"rq:job:{name}:dependents", "function")
        store.redis.rpush("rq:queue:ask", name)
    store.redis.rpush("rq:queue:act", "a job/id", b"\xff\xfe", "no-such-job", "")
    store.redis.set("rq:suspended", 1)
    store.redis.rpush("rq:job:wrong-type", "x")
    store.redis.rpush("rq:queue:narrate", "wrong-type")
    worker = start(store.url)
    _until(lambda: not any(store.redis.llen(f"rq:queue:{queue}") for queue in ("ask", "act", "narrate")))
    Doorbell(store.redis).ring("ask", "note", "last")
    _until(lambda: "last" in _notes(store))
    errors = _stop(worker)
    assert not proof.exists()
    assert worker.returncode == 0
    assert set(_notes(store)) == {"ok", "ok fails", "last", "left"}
    assert _notes(store).count("ok fails") == 2  # one each for the failure callback and the retries, none repeated
    assert "names nothing that this worker does" in errors


def test_the_same_forgeries_do_run_commands_in_a_plain_job(store: Store, tmp_path: Path) -> None:
    proof = tmp_path / "owned"
    _forge(store, "function", _forgeries(str(proof))["function"])
    Job.fetch("function", connection=store.redis, serializer="json").perform()
    assert proof.exists()


def test_a_fixed_job_never_unpickles_whatever_serializer_is_asked_for(store: Store, tmp_path: Path) -> None:
    proof = tmp_path / "owned"
    forged = _forgeries(str(proof))
    for name in ("pickle", "pickle-uncompressed", "pickled-meta", "pickled-result"):
        _forge(store, name, forged[name])
        job = FixedJob.fetch(name, connection=store.redis, serializer="pickle")
        with pytest.raises(LookupError):
            job.perform()
    assert not proof.exists()
