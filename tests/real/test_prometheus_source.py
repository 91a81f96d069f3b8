"""Readings from a real Prometheus: of the fleet's instances, never older than said, and honest when it is away."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bot.messages import strict
from policies.errors import NotFound
from policies.fleet import Fleet, Host, HttpCheck, MetricQuery, Service
from policies.metrics.collected import Asked
from policies.metrics.measured import Measured, Reading
from policies.metrics.samples import Sample, Scrape
from policies.metrics.window import measure
from tests.conftest import Store
from tests.ports import free_port
from tests.real.prometheus_server import PrometheusServer
from tests.workers.test_metrics_recorder import Engine
from workers.metrics.kept import Kept
from workers.metrics.prometheus import ANSWER_MAX_BYTES, LEAST_MOMENTS, MOST_MOMENTS, Prometheus, moments
from workers.metrics.source import Metrics

pytestmark = pytest.mark.real

BEGAN = 1_764_583_200.0
END = BEGAN + 600.0
BOTH = ("decode@gpu1", "decode@gpu2")
# what the Prometheus calls them
CALLED = {"decode@gpu1": "192.0.2.11:30001", "decode@gpu2": "gpu2:30001", "prefill@gpu1": "prefill@gpu1"}
RUNNING = "sum(max by (instance, dp_rank) (sglang:num_running_reqs))"


def check(port: int) -> HttpCheck:
    return HttpCheck(url=f"http://127.0.0.1:{port}/metrics")


def fleet(url: str | None = None) -> Fleet:
    return Fleet(
        name="f",
        hosts={
            "gpu1": Host(name="gpu1", address="192.0.2.11", user="me"),
            "gpu2": Host(name="gpu2", address="192.0.2.12", user="me"),
        },
        services={
            "decode": Service(
                name="decode", on=("gpu1", "gpu2"), unit="d.service", health=check(30001), metrics=check(30001)
            ),
            "prefill": Service(
                name="prefill", on=("gpu1",), unit="p.service", health=check(30000), metrics=check(30000)
            ),
        },
        restarts={},
        knobs={},
        metrics={"running_reqs": MetricQuery(name="running_reqs", on="decode", query=RUNNING, unit="requests")},
        prometheus_url=url,
    )


def scrapes(instance: str) -> list[Scrape]:
    """Ten minutes, every 15 s; `ended` stops after five, `half` is on one replica only, `lonely` on prefill."""
    found = []
    for turn in range(41):
        at = BEGAN + turn * 15.0
        first = instance == "decode@gpu1"
        samples = [
            *(Sample("sglang:num_running_reqs", {"tp_rank": tp}, turn + first) for tp in ("0", "1")),
            Sample("sglang:generation_tokens_total", {}, turn * 150.0),
            Sample("ttft_bucket", {"le": "1"}, turn * 8.0),
            Sample("ttft_bucket", {"le": "30"}, turn * 9.0),
            Sample("ttft_bucket", {"le": "+Inf"}, turn * 10.0),
            Sample("unknown", {}, float("nan")),
        ]
        if turn <= 20:
            samples.append(Sample("ended", {}, 7.0))
        if first:
            samples.append(Sample("half", {}, 1.0))
        if instance == "prefill@gpu1":
            samples.append(Sample("lonely", {"job": "p"}, 3.0))
        found.append(Scrape(instance, "u", at, tuple(samples)))
    return found


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    """One that the server scrapes itself."""
    found = Engine()
    found.text = 'running{instance="own"} 5\n# TYPE replays counter\nreplays 3\nother 1\n'
    yield found
    found.close()


@pytest.fixture(scope="module")
def server(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    found = PrometheusServer(tmp_path_factory.mktemp("prometheus"))
    recorded = [s for instance in CALLED for s in scrapes(instance)]
    found.fill(Scrape(CALLED[s.instance], s.url, s.at, s.samples) for s in recorded)
    job = {"job_name": "j", "scrape_interval": "200ms", "scrape_timeout": "200ms"}
    found.start([{**job, "static_configs": [{"targets": [f"127.0.0.1:{engine.port}"]}]}])
    yield found
    found.stop()


@pytest.fixture
def source(server: PrometheusServer) -> Iterator[Prometheus]:
    found = Prometheus(fleet(), server.url + "/")
    yield found
    found.close()


def asked(text: str) -> Asked:
    return Asked(text, text, "1")


def ask(source: Prometheus, text: str, *instances: str, start: float = END - 60, end: float = END) -> Measured:
    return source.window(asked(text), instances or BOTH, start, end)


def problem(found: Measured) -> str | None:
    if found.problem is None:
        return None
    assert strict(found.problem)
    return found.problem.code


def last(found: Measured) -> float:
    assert found.last is not None, found.problem
    return found.last.value


def test_the_same_samples_give_the_same_readings_from_both_sources(
    source: Prometheus, server: PrometheusServer
) -> None:
    recorded = [s for instance in BOTH for s in scrapes(instance)]
    for text in (RUNNING, "sum(rate(sglang:generation_tokens_total[1m]))", "time() - 100"):
        theirs = ask(source, text)
        ours = measure(asked(text), recorded, instances=BOTH, start=END - 60, end=END)
        assert [r.at for r in theirs.readings] == [r.at for r in ours.readings]
        assert [r.value for r in theirs.readings] == pytest.approx([r.value for r in ours.readings])
        assert (problem(theirs), problem(ours)) == (None, None)
        assert theirs.source == f"prometheus {server.url}"


def test_one_moment_is_asked_for_by_an_instant_query(source: Prometheus) -> None:
    found = source.at(asked(RUNNING), BOTH, END)
    assert found.readings == (Reading(at=END, value=81.0),)


@pytest.mark.parametrize(
    ("instances", "value"),
    [(BOTH, 81.0), (("decode@gpu1",), 41.0), (("decode@gpu2",), 40.0), (("prefill@gpu1",), 40.0)],
)
def test_a_query_reads_the_instances_that_it_is_asked_of_and_no_others(
    source: Prometheus, instances: tuple[str, ...], value: float
) -> None:
    assert last(ask(source, RUNNING, *instances)) == value


def test_a_selector_that_says_whom_it_means_is_left_as_it_is(source: Prometheus) -> None:
    assert last(ask(source, 'sum(lonely{job="p"})')) == 3.0
    assert last(ask(source, 'sum(sglang:num_running_reqs{instance="prefill@gpu1",tp_rank="0"})')) == 40.0
    assert problem(ask(source, "sum(lonely)")) == "metrics.missing"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("sum(sglang:num_running_reqs offset 5m)", 42.0 + 40.0),
        ("max_over_time(sum(sglang:generation_tokens_total)[5m:30s])", 12000.0),
        ("sum(topk(1, sglang:num_running_reqs))", 41.0),
        ("sum(sglang:num_running_reqs or vector(1))", 163.0),
        ("sum(sglang:num_running_reqs @ 1764583260)", 18.0),
    ],
)
def test_a_server_answers_what_scrapes_cannot(source: Prometheus, text: str, value: float) -> None:
    assert last(ask(source, text)) == value


def test_no_data_is_said(source: Prometheus) -> None:
    found = ask(source, "sum(nothing)")
    assert (found.readings, problem(found)) == ((), "metrics.missing")
    assert problem(ask(source, RUNNING, start=BEGAN - 900, end=BEGAN - 800)) == "metrics.missing"


def test_a_replica_without_the_series_spoils_the_sum(source: Prometheus) -> None:
    found = ask(source, "sum(half)")
    assert (found.readings, problem(found)) == ((), "metrics.partial")
    assert found.problem is not None
    assert found.problem.values["instance"] == "decode@gpu2"
    assert last(ask(source, "sum(half)", "decode@gpu1")) == 1.0


def test_the_last_sample_is_no_reading_for_long(source: Prometheus) -> None:
    ended = BEGAN + 20 * 15
    found = ask(source, "sum(ended)", start=ended + 91, end=ended + 250)  # the server fills five minutes
    assert (found.readings, problem(found)) == ((), "metrics.stale")
    assert found.problem is not None
    assert found.problem.values["last"] == ended
    partly = ask(source, "sum(ended)", start=ended, end=ended + 200)
    assert max(r.at for r in partly.readings) <= ended + 90
    assert problem(partly) == "metrics.gaps"


def test_what_is_no_number_is_no_reading(source: Prometheus) -> None:
    found = ask(source, "sum(unknown)")
    assert (found.readings, problem(found)) == ((), "metrics.no-number")


def test_series_that_disagree_are_told_with_both_values(source: Prometheus) -> None:
    found = ask(source, "max by (instance) (sglang:num_running_reqs)")
    assert (found.readings[-1].value, found.readings[-1].most) == (40.0, 41.0)
    assert problem(found) == "metrics.disagree"


def test_a_quantile_beyond_the_last_bound_is_told_so_though_the_server_hides_it(source: Prometheus) -> None:
    buckets = "sum by (le) (rate(ttft_bucket[2m]))"
    beyond = ask(source, f"(histogram_quantile(0.95, {buckets}))")
    assert beyond.readings[-1] == Reading(at=END, value=30.0, beyond=True)
    inside = ask(source, f"histogram_quantile(0.85, {buckets})")
    assert inside.readings[-1].value == pytest.approx(1 + 29 * 0.5)
    nested = ask(source, f"2 * histogram_quantile(0.95, {buckets})")
    assert (nested.readings, problem(nested)) == ((), "metrics.past-bounds")
    assert last(ask(source, f"2 * histogram_quantile(0.85, {buckets})")) == pytest.approx(31.0)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("sum(", "metrics.bad-query"),
        ('a{b="c" or d="e"}', "metrics.bad-query"),  # newer than the server
        ("sglang:num_running_reqs * on (instance) sglang:num_running_reqs", "metrics.ambiguous"),
    ],
)
def test_a_query_that_the_server_refuses_says_why(source: Prometheus, text: str, code: str) -> None:
    found = ask(source, text)
    assert (found.readings, problem(found)) == ((), code)


@pytest.mark.parametrize("length_s", [0.0, 0.01, 1.0, 60.0, 61.7, 3600.0, 86400.0 * 30])
def test_the_moments_of_a_window_end_with_it(length_s: float) -> None:
    found = moments(END - length_s, END)
    assert found[-1] == END
    assert found[0] >= END - length_s
    assert len(found) <= MOST_MOMENTS + 1
    assert len(found) > LEAST_MOMENTS or length_s < 0.02


class Odd:
    """A server that is no good Prometheus: it gives what it is told to. Counts connections."""

    def __init__(self, answer: Callable[[BaseHTTPRequestHandler], None]) -> None:
        odd = self
        self.connections = 0

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                odd.connections += 1
                super().setup()

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self) -> Odd:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def gives(body: bytes, status: int = 200) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def floods(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(ANSWER_MAX_BYTES * 2))
    handler.end_headers()
    try:
        for _ in range(64):
            handler.wfile.write(b" " * (ANSWER_MAX_BYTES // 32))
    except OSError:
        handler.close_connection = True


def sleeps(_handler: BaseHTTPRequestHandler) -> None:
    time.sleep(1)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (gives(b"<html>", 404), "metrics.prometheus-failed"),
        (gives(b"", 502), "metrics.prometheus-failed"),
        (gives(b'{"status":"error","errorType":"timeout","error":"too slow"}', 503), "metrics.prometheus-failed"),
        (gives(b'{"status":"success"}'), "metrics.prometheus-failed"),
        (gives(b'{"status":"success","data":{"resultType":"string","result":[1,"x"]}}'), "metrics.prometheus-failed"),
        (gives(b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"2"]]}]}}'),
         "metrics.prometheus-failed"),
        (floods, "metrics.prometheus-long"),
        (sleeps, "metrics.prometheus-away"),
    ],
    ids=["not there", "empty", "timed out", "no data", "a text", "another moment", "endless", "silent"],
)  # fmt: skip
def test_what_is_no_answer_is_said(answer: Callable[[BaseHTTPRequestHandler], None], code: str) -> None:
    with Odd(answer) as odd:
        source = Prometheus(fleet(), odd.url, timeout_s=0.5)
        found = ask(source, RUNNING)
        source.close()
    assert (found.readings, problem(found)) == ((), code)


def test_a_warning_stands_beside_the_readings_and_the_connection_is_kept() -> None:
    values = [[at, "5"] for at in moments(END - 60, END)]
    series = {"resultType": "matrix", "result": [{"metric": {"instance": "decode@gpu1"}, "values": values}]}
    body = json.dumps({"status": "success", "data": series, "warnings": ["half of the data is away"]}).encode()
    with Odd(gives(body)) as odd:
        source = Prometheus(fleet(), odd.url)
        found = ask(source, "time() + 1", "decode@gpu1")
        ask(source, "time() + 1", "decode@gpu1")
        source.close()
        assert odd.connections == 1
    assert len(found.readings) == len(values)
    assert found.problem is not None
    assert (problem(found), found.problem.values["warning"]) == ("metrics.warned", "half of the data is away")


def away(store: Store) -> tuple[Metrics, Kept]:
    """Metrics of a fleet whose Prometheus is not there."""
    url = f"http://127.0.0.1:{free_port()}"
    kept = Kept(store.redis, keep_s=1e9)
    return Metrics(fleet(url), kept, lambda: pytest.fail("nothing is scraped"), Prometheus(fleet(url), url)), kept


def test_scrapes_stand_in_for_a_server_that_is_away_and_it_is_said(store: Store) -> None:
    metrics, kept = away(store)
    alone = metrics.window("running_reqs", start=END - 60, end=END)
    assert (alone.readings, problem(alone)) == ((), "metrics.prometheus-away")
    kept.add(s for instance in BOTH for s in scrapes(instance))
    found = metrics.window("running_reqs", start=END - 60, end=END)
    assert last(found) == 81.0
    assert (found.name, found.unit, problem(found)) == ("running_reqs", "requests", "metrics.instead")
    assert found.source.startswith("scrape of u on gpu1, scrape of u on gpu2 (instead of prometheus http://127.0.0.1:")
    metrics.close()


def test_the_age_of_the_last_scrape_is_told_however_long_ago_it_was(store: Store) -> None:
    kept = Kept(store.redis, keep_s=1e9)
    metrics = Metrics(fleet(), kept, lambda: pytest.fail("nothing is scraped"), None)
    assert problem(metrics.window("running_reqs", start=END - 60, end=END)) == "metrics.missing"
    kept.add(s for instance in BOTH for s in scrapes(instance)[:3])
    found = metrics.window("running_reqs", start=END - 60, end=END)
    assert problem(found) == "metrics.stale"
    assert found.problem is not None
    assert found.problem.values["last"] == BEGAN + 30


def test_an_unknown_place_is_no_place(store: Store) -> None:
    metrics = Metrics(fleet(), Kept(store.redis, keep_s=1e9), lambda: pytest.fail("nothing is scraped"), None)
    with pytest.raises(NotFound, match="decode@gpu3"):
        metrics.window("running_reqs", "decode@gpu3", start=END - 60, end=END)


def test_an_answer_of_the_server_is_never_replaced(store: Store, server: PrometheusServer) -> None:
    kept = Kept(store.redis, keep_s=1e9)
    kept.add(Scrape(i, "u", END, (Sample("half", {}, 9.0), Sample("nothing", {}, 9.0))) for i in CALLED)
    metrics = Metrics(fleet(server.url), kept, lambda: pytest.fail("nothing"), Prometheus(fleet(), server.url))
    assert last(metrics.window("half", "decode@gpu1", start=END - 60, end=END)) == 1.0
    assert problem(metrics.window("nothing", start=END - 60, end=END)) == "metrics.missing"
    metrics.close()


def test_what_a_server_scrapes_itself_is_found_by_its_address_and_ends_with_its_series(
    engine: Engine, server: PrometheusServer
) -> None:
    port = engine.port
    service = Service(name="decode", on=("gpu1",), unit="d.service", health=check(port), metrics=check(port))
    one = Fleet(
        name="f",
        hosts={"gpu1": Host(name="gpu1", address="192.0.2.11", user="me")},
        services={"decode": service},
        restarts={},
        knobs={},
    )
    source = Prometheus(one, server.url)

    def now(text: str) -> Measured:
        return source.at(asked(text), ["decode@gpu1"], time.time())

    until(lambda: now("sum(running)").readings != ())
    assert last(now('sum by (exported_instance) (running{exported_instance="own"})')) == 5
    assert last(now("replays")) == 3
    engine.text = "other 1\n"
    until(lambda: problem(now("sum(running)")) == "metrics.missing")
    assert last(now("sum(other)")) == 1
    source.close()


def until(holds: Callable[[], bool], most_s: float = 20.0) -> None:
    end = time.monotonic() + most_s
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)
