"""A restart of an engine whose health check fails while it works, on a real one with real requests."""

from __future__ import annotations

import urllib.request

import pytest

from policies import events as e
from policies.change import Change
from policies.finding import Finding
from policies.fleet import Fleet
from policies.intents import Restart
from policies.metrics.engine import Engine
from policies.metrics.samples import Scrape, read_scrape
from sandbox.fleet.load import Load
from tests.real.stage import ANA, Stage, until

pytestmark = pytest.mark.real

REQUESTS = 4
TOKENS = 150


def failing_health(document: Fleet) -> Fleet:
    """The check of decode asks for what is not there, so that it fails while the engine works."""
    decode = document.services["decode"]
    url = decode.health.url.replace("/health", "/no-such-page")
    health = decode.health.model_copy(update={"url": url})
    return document.model_copy(
        update={"services": {**document.services, "decode": decode.model_copy(update={"health": health})}}
    )


def refusal(stage: Stage, change: Change) -> Finding:
    """The first reason of a refused change."""
    assert change.state == "refused", stage.kinds(change)
    return stage.last(change, e.Refused).findings[0]


def test_a_working_engine_is_restarted_only_by_somebody_who_says_so_and_is_on_record(stage: Stage) -> None:
    stage.rewire(failing_health(stage.document))
    pid = stage.pid("decode")
    with Load(stage.fleet.url("router"), REQUESTS, TOKENS):
        found = refusal(stage, stage.ask(Restart(scope="decode", because="it is dead")))
        assert (found.code, found.values["status"]) == ("plan.busy-not-dead", 404)
        assert isinstance(found.values["by"], float)
        assert found.values["by"] > 0
        assert stage.pid("decode") == pid

        said = Restart(scope="decode", because="KV is held", anyway=True)
        change = stage.ask(said)
        assert change.state == "planned"
        warning = next(f for f in change.planned.plans[0].warnings if f.code == "plan.busy-restarted-anyway")  # type: ignore[union-attr]
        assert warning.values["actor"] == ANA.id
        assert stage.last(change, e.Asked).intent == said
        stage.say(change, "deny")

        blamed = stage.ask()  # a revert of a knob: planned, with what the engine does
        assert blamed.planned is not None, stage.kinds(blamed)
        for plan in blamed.planned.plans:
            told = next(f for f in plan.warnings if f.code == "plan.busy-restarted")
            assert (told.values["instance"], told.values["status"]) == ("decode@gpu1", 404)
            assert isinstance(told.values["by"], float)
            assert told.values["by"] > 0
        stage.say(blamed, "deny")


def test_an_engine_without_work_may_be_restarted_although_its_check_fails(stage: Stage) -> None:
    stage.rewire(failing_health(stage.document))
    until(lambda: running(stage) == 0, "requests still run")
    change = stage.ask(Restart(scope="decode"))
    assert change.state == "planned"
    stage.say(change, "deny")


def running(stage: Stage) -> float | None:
    """Requests in decode's batch, as it tells itself."""
    url = stage.fleet.url("decode", "/metrics")
    with urllib.request.urlopen(url) as answer:
        found = read_scrape(answer.read().decode(), instance="decode@gpu1", url=url, at=0.0)
    return Engine(found).running.value if isinstance(found, Scrape) else None
