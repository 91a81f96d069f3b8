"""Restarts that change no value, and the watch after the last gate, on real services with requests that really fail."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import JsonValue

from policies import events as e
from policies.change import Change
from policies.finding import Finding
from policies.intents import Actor, Intent, Restart, RevertKnob
from sandbox.fleet.document import KNOB, KNOB_ENV
from sandbox.stage import fetch
from tests.real.stage import BEN, PYTHON, WAIT_S, Stage, plan_of
from tests.shared import ROOT

pytestmark = pytest.mark.real

WATCH_S = 1.5
LONG_WATCH_S = 4.0  # longer than a takeover
REVERT = RevertKnob(knob=KNOB, because="multi-round hang")


@pytest.fixture
def watched(stage: Stage) -> Stage:
    """Changes are watched for a moment after their last gate."""
    watch(stage, WATCH_S)
    return stage


def watch(stage: Stage, bake_s: float) -> None:
    timing = stage.document.timing.model_copy(update={"bake_s": bake_s})
    stage.rewire(stage.document.model_copy(update={"timing": timing}))


def files(stage: Stage) -> dict[str, bytes]:
    """Every file of every unit."""
    return {str(path): path.read_bytes() for path in stage.units.rglob("*") if path.is_file()}


def failing_request(stage: Stage) -> None:
    """Decode is asked to fetch a KV that prefill does not have: an answer of 500, counted by the engine itself."""
    body: dict[str, JsonValue] = {
        "address": stage.fleet.url("prefill"),
        "kv": "0" * 32,
        "identity": "0" * 32,
        "max_tokens": 1,
    }
    status, said = fetch(stage.fleet.url("decode", "/generate"), body)
    assert (status, "prefill" in said) == (500, True), said


def during_the_watch(stage: Stage, intent: Intent, order: str, act: Callable[[], object]) -> Change:
    """Carry a change out while `act` happens right after its watch began."""
    stage.once("bake_started", None, act)
    return stage.execute(stage.approved(order, intent))


def held_for(stage: Stage, change: Change) -> list[Finding]:
    assert change.state == "held"
    return list(stage.last(change, e.Held).findings)


def test_a_restart_of_decode_starts_it_once_writes_nothing_and_succeeds_after_the_watch(watched: Stage) -> None:
    before = files(watched)

    done = watched.execute(watched.approved("decode", Restart(scope="decode")))

    assert done.state == "succeeded"
    assert watched.starts() == (0, 1, 0)
    assert files(watched) == before
    assert watched.environ()[KNOB_ENV] == "512"
    plan = plan_of(done, "decode")
    assert (plan.knob, plan.targets, plan.undo, [step.kind for step in plan.steps]) == (None, (), (), ["restart"])
    kinds = watched.kinds(done)
    assert kinds[-5:] == ["proved", "bake_started", "probed", "baked", "succeeded"]
    end = watched.last(done, e.Succeeded)
    assert (end.knob, end.was, end.now) == (None, {}, {})
    at = {entry.event.kind: entry.at for entry in watched.w.client.entries(done.id)}
    assert at["baked"] >= watched.last(done, e.BakeStarted).until
    assert "bake.counters" in watched.codes(done)


def test_a_restart_via_co_restart_goes_in_order_and_each_waits_for_the_one_before(stage: Stage) -> None:
    done = stage.execute(stage.approved("co-restart", Restart(scope="decode", order="co-restart")))
    assert done.state == "succeeded"
    assert stage.starts() == (1, 1, 1)
    prefill, decode, router = (stage.clock(role, "started")[-1] for role in ("prefill", "decode", "router"))
    assert prefill < stage.clock("prefill", "healthy")[-1] < decode
    assert decode < stage.clock("decode", "healthy")[-1] < router


def test_a_restart_of_a_host_restarts_its_services_in_the_order_of_their_needs(stage: Stage) -> None:
    done = stage.execute(stage.approved("gpu1", Restart(scope="gpu1", because="a new driver")))
    assert done.state == "succeeded"
    assert [step.service for step in plan_of(done, "gpu1").steps] == ["prefill", "decode", "router"]
    assert stage.starts() == (1, 1, 1)


def test_who_may_not_ask_for_a_restart_is_refused_and_nothing_starts(stage: Stage) -> None:
    refused = stage.ask(Restart(scope="decode"), Actor(id="U09EVE", roles=()))
    assert refused.state == "refused"
    assert "rule.may-not-ask" in stage.codes(refused)
    assert stage.ask(Restart(scope="prefill", order="decode-only")).state == "refused"
    assert stage.starts() == (0, 0, 0)


def test_a_unit_restarted_by_hand_while_it_is_watched_holds_the_change(watched: Stage) -> None:
    held = during_the_watch(watched, Restart(scope="decode"), "decode", lambda: watched.restart_by_hand("decode"))
    (finding,) = held_for(watched, held)
    assert (finding.code, finding.values["new_pid"]) == ("bake.restarted", watched.pid("decode"))
    assert watched.starts() == (0, 2, 0)  # ours, and the one by hand
    assert watched.say(held, "undo").code == "click.nothing-to-undo"
    assert watched.say(held, "keep").code == "click.ok"
    assert watched.w.client.change(held.id).state == "failed"


def test_failures_that_rise_while_it_is_watched_hold_the_change_and_a_person_has_it_undone(watched: Stage) -> None:
    held = during_the_watch(watched, REVERT, "decode-only", lambda: failing_request(watched))
    found = {(finding.code, finding.values["what"]) for finding in held_for(watched, held)}
    assert found >= {("bake.failures-rose", "failed-transfers")}
    assert {code for code, _ in found} == {"bake.failures-rose"}
    assert KNOB_ENV not in watched.environ()
    assert watched.starts() == (0, 1, 0)
    assert watched.say(held, "undo", BEN).code == "click.ok"
    assert watched.execute(held).state == "rolled_back"
    assert watched.environ()[KNOB_ENV] == "512"


def test_failures_before_the_watch_began_are_not_counted_against_the_change(watched: Stage) -> None:
    watched.once("proved", None, lambda: failing_request(watched))
    assert watched.execute(watched.approved("decode", Restart(scope="decode"))).state == "succeeded"


def test_an_abort_while_it_is_watched_undoes_the_change(watched: Stage) -> None:
    def abort() -> None:
        assert watched.say(watched.w.client.change("C-1"), "abort").code == "click.ok"

    done = during_the_watch(watched, REVERT, "decode-only", abort)
    assert done.state == "aborted"
    assert watched.environ()[KNOB_ENV] == "512"
    assert watched.starts() == (0, 2, 0)
    assert "baked" not in watched.kinds(done)


def test_an_abort_while_a_restart_is_watched_ends_it_and_restarts_nothing_more(watched: Stage) -> None:
    def abort() -> None:
        assert watched.say(watched.w.client.change("C-1"), "abort").code == "click.ok"

    done = during_the_watch(watched, Restart(scope="decode"), "decode", abort)
    assert done.state == "aborted"
    assert watched.codes(done) >= {"undo.nothing"}
    assert watched.starts() == (0, 1, 0)


def test_a_worker_killed_while_it_watches_is_taken_over_and_the_watch_ends_when_it_was_to_end(
    stage: Stage, tmp_path: Path
) -> None:
    watch(stage, LONG_WATCH_S)
    change = stage.approved("decode", Restart(scope="decode"))
    fleet = stage.fleet
    argv = [PYTHON, "-m", "tests.real.worker_process", str(fleet.fleet_yaml), stage.url, str(fleet.ssh_key)]
    argv += [change.id, "SIGKILL", "after", "bake_started", "-1", str(LONG_WATCH_S)]
    with (tmp_path / "worker.log").open("wb") as log:
        child = subprocess.Popen(argv, cwd=ROOT, stdout=log, stderr=log)
    try:
        assert child.wait(WAIT_S) == -signal.SIGKILL
    finally:
        child.kill()
        child.wait(WAIT_S)
    promised = stage.last(change, e.BakeStarted).until
    stage.free()

    done = stage.execute(change)

    assert done.state == "succeeded"
    assert stage.kinds(done).count("bake_started") == 1
    assert stage.last(done, e.BakeStarted).until == promised
    at = {entry.event.kind: entry.at for entry in stage.w.client.entries(done.id)}
    assert at["baked"] >= promised
    assert stage.starts() == (0, 1, 0)
