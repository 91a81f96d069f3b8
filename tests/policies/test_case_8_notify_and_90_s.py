"""A notify unit with the default start time-out: warned of before, called a time-out after, and not tried again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.messages import sentence
from policies.aftermath.foreseen import timeout
from policies.ending import ending
from policies.facts import UnitFacts
from policies.gates import incarnation
from policies.planning.knob import Planning, plan_knob
from policies.preflight import preflight
from tests.policies import builders as b
from workers.hosthelper import one, read_properties, span_s, whole

CASE: dict[str, Any] = json.loads((b.GOLDEN / "cases/8-notify-and-90-s.json").read_text(encoding="utf-8"))
FLEET = b.fleet()


def unit(show: str | None = None, **more: Any) -> UnitFacts:
    """Decode as systemd describes it: running, or as the dump of `systemctl show` says."""
    found: dict[str, Any] = {**CASE["systemd"], "fragment": CASE["unit"]}
    if show is not None:
        p = read_properties(show)
        found |= {
            "active_state": one(p, "ActiveState"), "sub_state": one(p, "SubState"), "result": one(p, "Result"),
            "n_restarts": whole(p, "NRestarts"), "exec_main_status": whole(p, "ExecMainStatus"),
            "timeout_start_s": span_s(one(p, "TimeoutStartUSec")),
        }  # fmt: skip
    return b.unit(**{**found, **more})


def planned(decode: UnitFacts, boots: list[float] | None = None) -> Planning:
    """The plans of a change on it."""
    recorded = {"decode@gpu1": CASE["boots"] if boots is None else boots}
    goal = b.goal_of(FLEET)
    return plan_knob(FLEET, goal, b.facts(FLEET, decode=decode), (), boots=recorded)


def test_the_plan_warns_before_anything_is_restarted() -> None:
    for plan in planned(unit()).plans:
        assert {f.code: sentence(f) for f in plan.warnings} == CASE["warned"]
        assert all(f.effect == "warn" for f in plan.warnings)


def test_afterwards_it_is_a_time_out_and_no_crash() -> None:
    now = unit(CASE["show"])
    verdict = incarnation.judge(
        "decode@gpu1",
        b.life(1),
        b.life(2),
        active_state=now.active_state,
        sub_state=now.sub_state,
        result=now.result,
        n_restarts=now.n_restarts,
        waited_s=480.0,
    )
    assert verdict.findings[0].code == "gate.incarnation.start-timeout"
    found = ending("decode@gpu1", result="timeout", code=2, status=now.exec_main_status, n_restarts=now.n_restarts)
    assert found is not None
    assert sentence(found) == CASE["ended"]
    plan = planned(unit()).plans[0]
    (foreseen,) = timeout(plan, "decode@gpu1", verdict.findings)
    assert foreseen.values["timeout_start_s"] == 90.0
    assert timeout(plan, "prefill@gpu1", verdict.findings) == ()


def test_no_further_restart_is_offered_until_the_limit_is_raised() -> None:
    refused = planned(unit(CASE["show"]))
    assert refused.plans == ()
    (finding,) = [f for f in refused.findings if f.effect == "refuse"]
    assert finding.code == "plan.start-timeout-below-boot"
    assert sentence(finding) == CASE["refused"]
    assert {"plan.start-timeout-recorded", "plan.not-active-now"} <= {f.code for f in refused.findings}
    assert planned(unit(CASE["show"], timeout_start_s=900.0)).plans != ()
    assert planned(unit(CASE["show"], timeout_start_s=None)).plans != ()


@pytest.mark.parametrize(
    ("boots", "changes", "refused"),
    [
        ([], {}, True),  # the fleet file's 300 s stand in
        ([80.0], {}, False),
        ([80.0, 480.0], {}, True),
        ([480.0], {"result": "exit-code"}, False),
        ([480.0], {"type": "simple"}, False),
        ([480.0, 462.0], {"sub_state": "start", "result": "success"}, True),  # the next try runs
        ([480.0, 80.0], {"sub_state": "start", "result": "success"}, False),
        ([480.0], {"sub_state": "start", "result": "success", "n_restarts": 0}, False),  # the first one may do
        ([], {"sub_state": "start", "result": "success"}, False),
    ],
)
def test_a_restart_is_refused_only_where_the_readings_say_that_it_cannot_do(
    boots: list[float], changes: dict[str, Any], refused: bool
) -> None:
    assert (planned(unit(CASE["show"], **changes), boots).plans == ()) is refused


@pytest.mark.parametrize(
    ("boots", "limit_s", "code"),
    [
        ([100.0], 90.0, "plan.start-timeout-recorded"),
        ([80.0], 90.0, "plan.start-timeout-recorded"),  # nine tenths of the limit
        ([70.0], 90.0, None),
        ([], 90.0, "plan.start-timeout-short"),
        ([], 300.0, None),
        ([480.0], None, None),
    ],
)
def test_recorded_boots_count_more_than_the_fleet_file(boots: list[float], limit_s: float | None, code: str) -> None:
    decode = unit(timeout_start_s=limit_s, fragment="[Service]\nExecStart=/x\n")
    found = preflight(FLEET, ["decode@gpu1"], {"decode@gpu1": decode}, {"decode@gpu1": boots})
    assert [f.code for f in found if f.code.startswith("plan.start-timeout")] == ([code] if code else [])


@pytest.mark.parametrize(
    ("result", "code", "status", "said"),
    [
        ("timeout", 2, 15, "gate.ended.timeout-sigterm"),
        ("timeout", None, 15, "gate.ended.timeout-sigterm"),
        ("timeout", 1, 0, "gate.ended.timeout"),
        ("timeout", 2, 9, "gate.ended.timeout"),
        ("exit-code", 1, 3, "gate.ended.exit"),
        ("start-limit-hit", 1, 3, "gate.ended.exit"),
        ("start-limit-hit", 2, 11, "gate.ended.signal"),
        ("start-limit-hit", 0, 0, "gate.ended.other"),
        ("signal", 2, 11, "gate.ended.signal"),
        ("core-dump", 3, 6, "gate.ended.signal"),
        ("oom-kill", 2, 9, "gate.ended.out-of-memory"),
        ("protocol", 1, 0, "gate.ended.other"),
        ("success", 1, 0, None),
        ("", None, None, None),
    ],
)
def test_an_end_is_told_in_the_words_of_systemd(result: str, code: int | None, status: int, said: str | None) -> None:
    found = ending("decode@gpu1", result=result, code=code, status=status, n_restarts=2)
    assert (found.code if found else None) == said
