"""A change leaves measurements from before, during and after each of its steps, without being asked for them."""

from __future__ import annotations

from itertools import pairwise

import pytest

from policies import events as e
from policies.finding import Finding
from policies.metrics.engine import Engine
from policies.metrics.samples import Scrape
from sandbox.fleet.document import BAKE
from tests.real.stage import Stage, quick
from workers.metrics.kept import APART_MS
from workers.metrics.slow_tick import SlowTick

pytestmark = pytest.mark.real
INSTANCES = ("prefill@gpu1", "decode@gpu1", "router@gpu1")


def test_every_instance_is_measured_around_every_step(stage: Stage) -> None:
    assert BAKE == "2s"
    stage.rewire(quick(stage.document, bake_s=0.5))
    began = stage.w.clock()
    change = stage.execute(stage.approved("co-restart"))
    assert change.state == "succeeded"
    assert stage.w.recorder.flush(10)
    entries = stage.w.ledger.entries(change.id)
    steps = [entry.at for entry in entries if isinstance(entry.event, e.StepStarted)]
    ends = [entry.at for entry in entries if isinstance(entry.event, e.GatePassed)]
    assert len(steps) >= 3
    for instance in INSTANCES:
        moments = [scrape.at for scrape in stage.w.metrics.scrapes(instance, began, stage.w.clock())]
        for earlier, step in zip([began, *steps], steps, strict=False):
            # of two readings that lie nearer than that, one is kept
            assert [at for at in moments if earlier - APART_MS / 1000 < at < step], instance
        assert [at for at in moments if at > ends[-1]], instance

    decode = stage.w.metrics.scrapes("decode@gpu1", began, stage.w.clock())
    starts = {engine.started for engine in map(Engine, decode) if engine.started is not None}
    assert len(starts) == 2  # the process from before the restart, and that of after it

    running = stage.w.metrics.window("running_reqs", start=began, end=stage.w.clock())
    assert {reading.value for reading in running.readings} == {0.0}
    url = stage.document.services["decode"].metrics
    assert url is not None
    assert running.source == f"scrape of {url.url} on gpu1"
    uptime = stage.w.metrics.window("uptime_s", start=began, end=stage.w.clock())
    values = [reading.value for reading in uptime.readings]
    assert any(later < earlier for earlier, later in pairwise(values))


def test_the_slow_tick_measures_the_whole_fleet(stage: Stage) -> None:
    began = stage.w.clock()
    tick = SlowTick(stage.w.redis, stage.w.recorder, 3600.0)
    assert tick()
    assert tick.join(20)
    for instance in INSTANCES:
        (scrape,) = stage.w.metrics.scrapes(instance, began, stage.w.clock())
        assert scrape.instance == instance
    (router,) = stage.w.metrics.scrapes("router@gpu1", began, stage.w.clock())
    assert Engine(router).router_in_flight.value == 0.0


def test_a_scrape_of_now_holds_everything(stage: Stage) -> None:
    found = stage.w.metrics.take(INSTANCES)
    assert set(found) == set(INSTANCES)
    decode = found["decode@gpu1"]
    assert isinstance(decode, Scrape)
    assert decode.named("sglang:time_to_first_token_seconds_bucket")
    free = stage.w.metrics.window(
        "sum(sglang:time_to_first_token_seconds_bucket)", "decode", start=0, end=stage.w.clock()
    )
    assert free.readings == ()
    assert isinstance(free.problem, Finding)
    assert free.problem.code == "metrics.not-recorded"
