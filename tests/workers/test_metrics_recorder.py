"""Scrapes are recorded of every look and on a slow tick, by one process at a time, without holding anybody up."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from policies.facts import HttpAnswer
from policies.finding import Finding
from policies.fleet import Fleet, Host, HttpCheck, MetricQuery, Service
from policies.metrics.samples import Scrape
from tests.conftest import Store
from tests.policies import builders as b
from tests.real.ssh_servers import make_key
from workers.executors.systemd import SystemdHost
from workers.hosts import Hosts
from workers.life import own_life
from workers.metrics.background import Background
from workers.metrics.kept import Kept
from workers.metrics.recorder import Recorder
from workers.metrics.slow_tick import AWAY, DUE, RUNS, SlowTick
from workers.shells import Shell
from workers.shells.hostkeys import KnownHosts
from workers.shells.local import LocalShell
from workers.shells.ssh import SshPool
from workers.store import connect

TEXT = """\
sglang:num_running_reqs{tp_rank="0"} 5
sglang:num_queue_reqs{tp_rank="0"} 1
sglang:func_latency_seconds_bucket{le="+Inf"} 9
own_metric 3
process_start_time_seconds 1000
"""


class Engine:
    """A real server of metrics. `gate` cleared: it lets its callers wait."""

    def __init__(self) -> None:
        self.text, self.status = TEXT, 200
        self.asked = 0
        self.gate = threading.Event()
        self.gate.set()
        self.waiting = threading.Semaphore(0)
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                engine.asked += 1
                engine.waiting.release()
                engine.gate.wait(20)
                self.send_response(engine.status)
                self.end_headers()
                self.wfile.write(engine.text.encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port: int = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/metrics"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.gate.set()
        self.server.shutdown()
        self.server.server_close()


class Closed:
    """A port that takes connections and ends them at once; counts them."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        self.met = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                self.socket.accept()[0].close()
            except OSError:
                return
            self.met += 1


class TwoWays(Hosts):
    """The host `gpu1` is this machine, every other one is reached by SSH."""

    def __init__(self, fleet: Fleet, key: Path) -> None:
        make_key(key)
        self.local, self.ssh = LocalShell(), SshPool((key,), known_hosts=KnownHosts(()), reach_s=2.0)
        super().__init__(fleet, self.local)

    def at(self, host: str) -> SystemdHost:
        shell: Shell = self.local if host == "gpu1" else self.ssh
        return SystemdHost(shell, self._fleet.hosts[host], stay=host == "gpu1")

    def close(self) -> None:
        self.local.close()
        self.ssh.close()


@pytest.fixture
def engine() -> Iterator[Engine]:
    found = Engine()
    yield found
    found.close()


@pytest.fixture
def gone() -> Iterator[Closed]:
    found = Closed()
    yield found
    found.socket.close()


class Bench:
    """A recorder on this machine, maybe with a host that is away, and what it kept."""

    def __init__(self, store: Store, engine: Engine, folder: Path, gone: Closed | None = None) -> None:
        check = HttpCheck(url=engine.url, timeout_s=20.0)
        self.store, self.engine = store, engine
        hosts = {"gpu1": Host(name="gpu1", address="127.0.0.1", user="me", manager="user")}
        services = {
            "decode": Service(name="decode", on=("gpu1",), unit="d.service", health=check, metrics=check),
            "router": Service(name="router", on=("gpu1",), unit="r.service", health=check),
        }
        if gone is not None:
            hosts["gpu2"] = Host(name="gpu2", address="127.0.0.1", port=gone.port, user="me", manager="user")
            prefill = Service(name="prefill", on=("gpu2",), unit="p.service", health=check, metrics=check)
            services["prefill"] = prefill
        self.fleet = Fleet(
            name="f",
            hosts=hosts,
            services=services,
            restarts={},
            knobs={},
            metrics={"own": MetricQuery(name="own", on="decode", query="sum(own_metric)", unit="1")},
        )
        self.hosts = TwoWays(self.fleet, folder / "key")
        self.kept = Kept(store.redis, keep_s=1e9)
        self.recorder = Recorder(self.fleet, self.kept, lambda: self.hosts)

    def tick(self, every_s: float = 3600.0) -> SlowTick:
        """Of another process each, as far as Redis can tell."""
        return SlowTick(connect(self.store.url), self.recorder, every_s)

    def close(self) -> None:
        self.engine.gate.set()
        self.recorder.close()
        self.hosts.close()

    def recorded(self, instance: str = "decode@gpu1") -> tuple[Scrape, ...]:
        return self.kept.between(instance, 0, 1e10)


@pytest.fixture
def bench(store: Store, engine: Engine, tmp_path: Path) -> Iterator[Bench]:
    found = Bench(store, engine, tmp_path)
    yield found
    found.close()


@pytest.fixture
def far(store: Store, engine: Engine, gone: Closed, tmp_path: Path) -> Iterator[Bench]:
    """With a second host, that is away."""
    found = Bench(store, engine, tmp_path, gone)
    yield found
    found.close()


def names(scrape: Scrape) -> list[str]:
    return [sample.name for sample in scrape.samples]


def test_a_scrape_is_given_whole_and_kept_in_part(bench: Bench, engine: Engine) -> None:
    found = bench.recorder.take(["decode@gpu1"])["decode@gpu1"]
    assert isinstance(found, Scrape)
    assert len(found.samples) == 5
    (kept,) = bench.recorded()
    assert sorted(names(kept)) == [
        "own_metric",  # the fleet file asks for it
        "process_start_time_seconds",
        "sglang:num_queue_reqs",
        "sglang:num_running_reqs",
    ]
    assert (kept.url, kept.at) == (engine.url, found.at)


def test_a_host_that_is_away_does_not_keep_others_from_being_scraped(far: Bench) -> None:
    found = far.recorder.take(far.recorder.instances())
    assert isinstance(found["decode@gpu1"], Scrape)
    away = found["prefill@gpu2"]
    assert isinstance(away, Finding)
    assert (away.code, away.values["host"]) == ("metrics.host-away", "gpu2")
    assert far.recorded("prefill@gpu2") == ()


def test_only_what_has_a_metrics_url_is_scraped(far: Bench) -> None:
    assert far.recorder.instances() == ("decode@gpu1", "prefill@gpu2")
    assert far.recorder.instances(["router@gpu1", "decode@gpu1"]) == ("decode@gpu1",)


def test_an_engine_that_answers_with_an_error_ends_its_series(bench: Bench, engine: Engine) -> None:
    engine.status = 503
    assert isinstance(bench.recorder.take(["decode@gpu1"])["decode@gpu1"], Finding)
    assert [scrape.samples for scrape in bench.recorded()] == [()]


def look(text: str, at: float, status: int | None = 200) -> HttpAnswer:
    return HttpAnswer(id="metrics", url="http://127.0.0.1:1/metrics", status=status, body=text, at=at, took_s=0.1)


def test_the_metrics_of_every_look_at_units_are_recorded(bench: Bench) -> None:
    health = look("ok", 1.0).model_copy(update={"id": "health"})
    bench.recorder.seen({"decode@gpu1": b.unit("decode@gpu1", http=(health, look(TEXT, 100.0)))})
    bench.recorder.seen({"decode@gpu1": b.unit("decode@gpu1", http=(look("", 101.0, None),))})
    bench.recorder.seen({"decode@gpu1": b.unit("decode@gpu1", http=(health,))})
    assert bench.recorder.flush(10)
    assert [(scrape.at, len(scrape.samples)) for scrape in bench.recorded()] == [(100.0, 4), (101.0, 0)]


def test_a_step_waits_for_its_scrape_but_not_for_an_engine_that_hangs(bench: Bench, engine: Engine) -> None:
    bench.recorder.before_step(["decode@gpu1", "router@gpu1"])
    assert len(bench.recorded()) == 1
    bench.store.redis.flushall()
    engine.gate.clear()
    bench.recorder.before_step(["decode@gpu1"])
    assert engine.asked == 2
    assert bench.recorded() == ()  # it is still being answered: what comes of it is kept, also that there was none


def test_a_store_that_is_away_is_a_gap_and_no_error(bench: Bench) -> None:
    kept = Kept(connect("unix:///nowhere/redis.sock", retries=0), keep_s=60)
    recorder = Recorder(bench.fleet, kept, lambda: bench.hosts)
    with capture_logs() as logs:
        assert isinstance(recorder.take(["decode@gpu1"])["decode@gpu1"], Scrape)
    assert [(line["log_level"], line["event"]) for line in logs] == [("info", "scrapes are not recorded")]


def test_the_tick_is_taken_by_one_process_of_all_and_not_before_it_is_due(bench: Bench, engine: Engine) -> None:
    first, second = bench.tick(), bench.tick()
    assert first()
    assert not second()
    assert first.join(20)
    assert not second()
    assert not first()
    assert engine.asked == 1
    assert 3_500_000 < bench.store.redis.pttl(DUE) <= 3_600_000
    bench.store.redis.delete(DUE)
    assert second()
    assert second.join(20)
    assert engine.asked == 2


def test_a_tick_that_takes_long_puts_off_the_next_one(bench: Bench, engine: Engine) -> None:
    engine.gate.clear()
    first, second = bench.tick(), bench.tick()
    assert first()
    assert engine.waiting.acquire(timeout=20)
    bench.store.redis.delete(DUE)  # the next one is due, and this one is not done
    assert not second()
    assert not first()
    assert bench.store.redis.exists(DUE) == 0
    engine.gate.set()
    assert first.join(20)
    assert bench.store.redis.exists(RUNS) == 0
    assert second()
    assert second.join(20)


def test_a_process_that_was_killed_in_a_tick_does_not_hold_up_the_next_one(bench: Bench) -> None:
    here = own_life().rpartition("/")[0].rpartition("/")[0]
    bench.store.redis.set(RUNS, f"{here}/4194304/1 nonce")  # a number that no process has
    tick = bench.tick()
    assert tick()
    assert tick.join(20)
    bench.store.redis.set(RUNS, f"{own_life()} nonce")  # one that lives
    bench.store.redis.delete(DUE)
    assert not tick()


def test_a_host_that_is_away_is_told_once_and_asked_more_seldom(far: Bench, engine: Engine, gone: Closed) -> None:
    tick = far.tick(every_s=60.0)
    with capture_logs() as logs:
        assert tick()
        assert tick.join(20)
        met = gone.met
        assert met > 0
        far.store.redis.delete(DUE)
        assert tick()
        assert tick.join(20)
        assert gone.met == met
        assert 110_000 < far.store.redis.pttl(f"{AWAY}gpu2:pause") <= 120_000
        far.store.redis.delete(DUE, f"{AWAY}gpu2:pause")
        assert tick()
        assert tick.join(20)
        assert gone.met > met
        assert 230_000 < far.store.redis.pttl(f"{AWAY}gpu2:pause") <= 240_000
    assert [line["event"] for line in logs] == ["a host cannot be scraped, it is asked more seldom"]
    assert engine.asked == 3


def test_what_is_done_aside_is_done_in_order_and_a_failure_ends_nothing() -> None:
    aside, done = Background("test"), list[int]()
    with capture_logs() as logs:
        assert all(aside.later(lambda i=i: done.append(1 // (i - 2))) for i in range(4))  # type: ignore[misc]
        assert aside.flush(10)
    assert done == [-1, -1, 1]
    assert [line["log_level"] for line in logs] == ["error"]
    aside.close(10)
    assert not aside.later(lambda: done.append(9))


def test_what_is_too_much_is_let_go() -> None:
    gate = threading.Event()
    aside = Background("test", most_waiting=2)
    assert aside.later(lambda: gate.wait(20))
    assert aside.later(list)
    assert not aside.later(list)
    gate.set()
    assert aside.flush(10)
