"""Starts that go wrong: loops, limits, time-outs, a router that is ready too early, files that are not what runs."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest

from policies import events as e
from policies.intents import SetKnob
from sandbox.fleet.document import KNOB, KNOB_ENV
from sandbox.fleet.fleet import ROLES
from tests.real.stage import Stage, plan_of, quick
from tests.real.test_misbehaviour_holders import failure, warning

pytestmark = pytest.mark.real


@pytest.fixture(autouse=True)
def _behave(stage: Stage) -> Iterator[None]:
    yield
    for role in ROLES:
        stage.fleet.behave(role)


def test_a_slow_crash_loop_that_always_looks_activating_is_called_one_with_its_first_end(stage: Stage) -> None:
    change = stage.approved("co-restart")
    stage.fleet.misbehave("prefill", "slow-crash-loop")
    decode = stage.pid("decode")

    # the drop-in came after the plan: planned again
    assert stage.execute(change).state == "asked"
    held = stage.execute(stage.approved("co-restart"))

    assert held.state == "held"
    failed, found = failure(stage, held)
    assert failed.verdict.findings[0].code == "gate.incarnation.crash-loop"
    assert failed.verdict.findings[0].values["restarts"] == 3
    assert found["gate.ended.exit"].values["status"] == 3
    assert "told to give up after 0.2 s" in str(found["gate.log-tail"].values["text"])
    assert stage.pid("decode") == decode


def test_a_start_limit_is_told_with_the_first_real_failure(stage: Stage) -> None:
    stage.fleet.misbehave("prefill", "start-limit")
    stage.systemctl("reset-failed")
    held = stage.execute(stage.approved("co-restart"))
    assert held.state == "held"
    _, found = failure(stage, held)
    assert (found["gate.ended.exit"].values["result"], found["gate.ended.exit"].values["status"]) == ("exit-code", 3)
    assert found["gate.start-limit-reached"].values["burst"] == 2
    assert stage.starts()[1:] == (0, 0)


def test_a_start_that_has_no_time_is_warned_of_called_a_time_out_and_not_tried_again(stage: Stage) -> None:
    stage.rewire(quick(stage.document, boot_s=4.0))
    stage.fleet.misbehave("decode", "notify-short")
    change = stage.approved("decode-only")
    short = warning(stage, change, "plan.start-timeout-short").values
    assert (short["timeout_start_s"], short["boot_s"]) == (1.0, 4.0)
    misplaced = warning(stage, change, "unit.limit-in-service").values
    assert misplaced["key"] == "StartLimitIntervalSec"
    endless = warning(stage, change, "plan.start-limit-never").values
    assert (endless["burst"], endless["interval_s"], endless["each_s"]) == (3, 10.0, 31.0)

    held = stage.execute(change)

    assert held.state == "held"
    failed, found = failure(stage, held)
    assert failed.verdict.findings[0].code == "gate.incarnation.start-timeout"
    assert failed.verdict.findings[0].values["result"] == "timeout"
    assert any(code.startswith("gate.ended.timeout") for code in found)
    assert "gate.timeout-foreseen" in found
    assert "undo_started" not in stage.kinds(held)  # which would have ended alike

    again = stage.ask()
    assert again.state == "refused"
    (refused,) = [f for f in stage.last(again, e.Refused).findings if f.code == "plan.start-timeout-below-boot"]
    assert (refused.values["result"], refused.values["timeout_start_s"]) == ("timeout", 1.0)


def test_a_router_without_prefill_keeps_its_gate_shut_while_its_health_says_200(stage: Stage) -> None:
    stage.rewire(quick(stage.document, boot_s=5.0))
    stage.fleet.misbehave("router", "late-prefill")
    held = stage.execute(stage.approved("co-restart"))
    assert held.state == "held"
    failed, found = failure(stage, held)
    assert (failed.instance, failed.gate) == ("router@gpu1", "health")
    status = failed.verdict.findings[0]
    assert (status.code, status.values["status"]) == ("gate.health.status", 503)
    assert float(str(status.values["waited_s"])) > 2.5  # it was asked until its boot time was over, not once
    assert found["gate.router-lacks"].values["worker"] == "prefill"
    assert found["gate.router-lacks"].values["urls"] == stage.fleet.url("prefill")
    with urllib.request.urlopen(stage.fleet.url("router", "/health"), timeout=60) as answer:
        assert answer.status == 200
    assert stage.starts() == (1, 1, 1)


def test_a_router_that_hears_of_prefill_late_is_waited_for(stage: Stage) -> None:
    stage.fleet.misbehave("router", "slow-prefill")
    done = stage.execute(stage.approved("co-restart"))
    assert done.state == "succeeded"
    passed = [g for g in stage.events(done) if isinstance(g, e.GatePassed) and g.instance == "router@gpu1"]
    assert [g.gate for g in passed] == ["incarnation", "port", "health", "canary"]
    assert passed[2].waited_s is not None
    assert passed[2].waited_s >= 3.0


def test_a_router_that_is_checked_on_health_is_warned_of(stage: Stage) -> None:
    services = dict(stage.document.services)
    router = services["router"]
    check = router.health.model_copy(update={"url": stage.fleet.url("router", "/health")})
    services["router"] = router.model_copy(update={"health": check})
    stage.rewire(stage.document.model_copy(update={"services": services}))
    found = warning(stage, stage.ask(), "plan.router-health-says-nothing", "co-restart")
    assert found.values["needs"] == "prefill, decode"


def test_files_that_something_else_writes_or_systemd_has_not_read_are_warned_of(stage: Stage) -> None:
    stage.fleet.misbehave("decode", "managed")
    managed = warning(stage, stage.ask(), "plan.managed").values
    assert (managed["tool"], managed["line"]) == ("Ansible", 1)
    assert str(managed["path"]).endswith("sglang-demo-decode.service")
    stage.fleet.behave("decode")
    stage.fleet.misbehave("decode", "not-reloaded")
    codes = {w.code for w in plan_of(stage.ask()).warnings}
    assert "plan.not-reloaded" in codes
    assert "plan.managed" not in codes
    stage.fleet.behave("decode")
    assert {w.code for w in plan_of(stage.ask()).warnings} == set()
    stage.write("decode", "10-new.conf", "[Service]\nNice=1\n", reload=False)
    assert str(warning(stage, stage.ask(), "plan.dropin-not-loaded").values["files"]).endswith("10-new.conf")


def test_the_line_in_which_the_engine_says_why_it_took_its_default_is_quoted(stage: Stage) -> None:
    rules = tuple(rule.model_copy(update={"evidence": None}) for rule in stage.document.rules)
    stage.rewire(stage.document.model_copy(update={"rules": rules}))
    stage.guard("decode", f"export {KNOB_ENV}='600  # tuned'")
    done = stage.execute(stage.approved("decode-only", SetKnob(knob=KNOB, value="600")))
    failed = next(g for g in stage.events(done) if isinstance(g, e.GateFailed))
    assert (failed.gate, failed.verdict.findings[0].code) == ("environment", "gate.environment.not-live")
    (said,) = [f for f in failed.verdict.findings if f.code == "gate.log-about"]
    assert "'600  # tuned', using default" in str(said.values["text"])

    stage.systemctl("restart", "sglang-demo-decode.service")
    stage.fleet.wait_healthy()
    (proof,) = stage.w.looks.verify(KNOB).proofs
    assert proof.verdict == "not_live"
    assert [f.code for f in proof.findings][-1] == "proof.log-about"
