"""Behind the real sglang-router one of three is taken out, restarted and given back, also when a worker dies."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
import yaml
from pydantic import JsonValue

from policies import events as e
from policies.change import Change
from policies.intents import RevertKnob
from sandbox.fleet.document import KNOB, KNOB_ENV
from sandbox.fleet.fleet import DemoFleet, Engines
from sandbox.fleet.layout import Layout
from sandbox.fleet.units import unit_name
from tests.conftest import Store
from tests.real.stage import BOOT_S, LEASE_TOKEN, TIMING, pool_of, until
from tests.real.test_waves import DECODES, ON, Replicas, kill, step
from tests.sandbox.fleet_client import booted
from workers.shells.ssh import SshPool

__all__ = ("kill",)
pytestmark = pytest.mark.real
REQUEST_S = 30.0


@pytest.fixture(scope="module")
def fleet() -> Iterator[DemoFleet]:
    def make(folder: str) -> DemoFleet:
        engines = Engines(env={"decode": {KNOB_ENV: "512"}}, drain_s=1.0, real_router=True)
        more: dict[str, dict[str, JsonValue]] = {"decode": {"rolling": {"max_unavailable": 2, "keep": 1}}}
        hosts = Layout.replicated(ON)
        return DemoFleet(Path(folder) / "f", hosts=hosts, boot_s=BOOT_S, timing=TIMING, engines=engines, more=more)

    with tempfile.TemporaryDirectory(prefix="cb-") as folder, booted(lambda: make(folder)) as found:
        declared = yaml.safe_load(found.fleet_yaml.read_text())
        decode = declared["services"]["decode"]
        worker = decode["health"]["url"].removesuffix("/health")
        decode["drain"] = {"router": "router", "worker": worker, "kind": "decode", "deadline": "20s"}
        found.fleet_yaml.write_text(json.dumps(declared))
        yield found


@pytest.fixture(scope="module")
def pool(fleet: DemoFleet) -> Iterator[SshPool]:
    with pool_of(fleet) as found:
        yield found


@pytest.fixture
def replicas(fleet: DemoFleet, pool: SshPool, store: Store) -> Iterator[Replicas]:
    store.redis.set(LEASE_TOKEN, int(time.time()))
    stage = Replicas(fleet, store.url, pool)
    until(lambda: len(registered(stage)) == len(DECODES), "the router does not take its workers")
    yield stage
    stage.close()
    stage.put_back()


def registered(replicas: Replicas) -> set[str]:
    """The decodes that the router sends requests to."""
    with urlopen(replicas.fleet.url("router@gpu1", "/workers"), timeout=REQUEST_S) as answer:  # the loopback
        workers = json.loads(answer.read())["workers"]
    return {worker["url"] for worker in workers if worker["worker_type"] == "decode" and worker["is_healthy"]}


class Traffic:
    """Short requests, one after the other from a few senders; what did not end well is kept."""

    def __init__(self, url: str, senders: int = 2) -> None:
        self.bad: list[str] = []
        self.sent = 0
        self._url = url
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._send, daemon=True) for _ in range(senders)]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(REQUEST_S)

    def _send(self) -> None:
        body = json.dumps({"model": "m", "prompt": "2+2=", "max_tokens": 8}).encode()
        while not self._stop.is_set():
            request = Request(self._url, body, {"Content-Type": "application/json"})  # the loopback
            try:
                with urlopen(request, timeout=REQUEST_S) as answer:
                    answer.read()
                self.sent += 1
            except OSError as error:
                self.bad.append(str(error))


def test_no_request_is_lost_and_nobody_is_left_out_when_a_worker_dies_in_a_drain(
    replicas: Replicas, kill: Callable[[Change, str, str, int], None]
) -> None:
    before, first = registered(replicas), DECODES[0]
    revert = RevertKnob(knob=KNOB, because="multi-round hang", scope=first)
    with Traffic(replicas.fleet.url("router@gpu1", "/v1/completions")) as traffic:
        change = replicas.approved("decode-only", revert)
        kill(change, "before", "step_done", step(change, "drain", first))  # taken out, and nobody wrote it down
        assert (len(registered(replicas)), replicas.counted()) == (2, (0, 0, 0))
        kill(change, "after", "gate_passed", step(change, "admit", first))  # and the next one, before the canary
        change = replicas.execute(change)
    assert change.state == "succeeded", replicas.codes(change)
    assert (replicas.counted(), registered(replicas)) == ((1, 0, 0), before)
    assert (traffic.bad, traffic.sent > 0) == ([], True)
    told = replicas.told(change)
    acts = [f"do {word} {first}" for word in ("drain", "restart", "health", "admit", "admitted", "canary")]
    assert [x for x in told if x in acts] == acts
    (drain,) = [x for x in replicas.events(change) if isinstance(x, e.StepDone) and x.step == "drain"]
    assert [finding.code for finding in drain.findings] == ["drain.empty"]


def test_a_router_that_was_restarted_behind_a_drain_is_noticed_before_the_replica_is_restarted(
    replicas: Replicas,
) -> None:
    change, second = replicas.approved("decode-only"), DECODES[1]

    def by_hand() -> None:
        replicas.systemctl("restart", unit_name("router"))  # it begins with its command line, so it lists all of them
        until(lambda: taken_by(replicas) == len(DECODES), "the router does not take its workers")

    replicas.once("step_done", step(change, "drain", second), by_hand)
    change = replicas.execute(change)
    assert change.state == "held"
    (found,) = replicas.last(change, e.Held).findings
    assert (found.code, found.values["instance"]) == ("hold.registered-again", second)
    assert replicas.counted() == (1, 0, 0)
    assert replicas.say(change, "retry").code == "click.ok"
    change = replicas.execute(change)
    assert change.state == "succeeded", replicas.codes(change)
    assert (replicas.counted(), len(registered(replicas))) == ((1, 1, 1), len(DECODES))


def taken_by(replicas: Replicas) -> int:
    """How many decodes the router sends requests to; none while it boots."""
    try:
        return len(registered(replicas))
    except OSError:
        return 0
