"""Changes over many replicas: waves, who goes first, floors and undo, case by case and for any fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.plan import AdmitStep, DrainStep, Plan, RestartStep
from policies.planning.waves import stages_of
from tests.policies import builders as b
from tests.policies.rolling_cases import AWAY, SAID, SERVICES, drawn, fleet_of, name, planned, told

CASES = b.golden("plans/rolling.json")
OFFERED = [case for case in CASES if "plans" in case]
NEEDS = {"prefill": (), "decode": ("prefill",), "router": ("prefill", "decode")}


@pytest.mark.parametrize("case", OFFERED, ids=b.ids(OFFERED))
def test_replicas_are_planned_in_these_waves_and_undone_in_those(case: dict[str, Any]) -> None:
    plans = planned(case).plans
    assert [drawn(plan) for plan in plans] == case["plans"]
    assert [f.code for f in plans[0].warnings if f.code in SAID] == case.get("said", [])
    took = plans[0].estimate
    assert (None if took is None else [took.median_s, took.p90_s, took.n]) == case.get("takes")
    if "steps" in case:
        assert [told(step) for step in plans[0].steps] == case["steps"]
        assert [told(step) for step in plans[0].undo] == case["undo"]


@pytest.mark.parametrize("case", OFFERED, ids=b.ids(OFFERED))
def test_why_one_goes_first_is_told(case: dict[str, Any]) -> None:
    plain = "the first in the fleet file that is in service and runs what its files say"
    told = [one.canary.why for plan in planned(case).plans[:1] for one in plan.rolling if one.canary is not None]
    assert told == case.get("why", [plain] * len(told))


@pytest.mark.parametrize("case", [c for c in CASES if "plans" not in c], ids=lambda case: case["about"])
def test_what_cannot_be_taken_in_turn_is_refused_before_anything_is_touched(case: dict[str, Any]) -> None:
    planning = planned(case)
    assert planning.plans == ()
    assert [f.code for f in planning.findings if f.effect != "warn"] == case.get("refused", case.get("nothing"))
    assert {f.effect for f in planning.findings} == {"refuse" if "refused" in case else "note"}


def test_the_cases_cover_what_can_be_declared() -> None:
    assert len(CASES) >= 60
    assert {case.get("decode", 1) for case in CASES} == {1, 2, 3, 4, 5}
    most = {entry.get("max_unavailable", 1) for c in CASES for entry in c.get("rolling", {}).values()}
    assert most == {1, 2, 3}
    assert {c["deploy"].get("strategy", "releases") for c in CASES if "deploy" in c} == {
        "releases", "variable", "command",
    }  # fmt: skip
    assert {why for c in CASES for why in c.get("away", {}).values()} == set(AWAY) - {"well"}


def test_the_first_one_is_watched_and_judged_as_the_fleet_file_says() -> None:
    case = {"decode": 3, "rolling": {"decode": {"watch_s": 30.0, "require": ("ttft_s < 2",)}}}
    for plan in planned(case).plans:
        (canary,) = [one.canary for one in plan.rolling if one.canary is not None]
        assert (canary.instance, canary.watch_s, canary.require) == ("decode@gpu1", 30.0, ("ttft_s < 2",))


def test_a_fleet_that_is_mixed_is_called_so_with_who_is_on_what() -> None:
    now = {"decode@gpu1": "128", "decode@gpu2": "512", "decode@gpu3": "128"}
    plan = planned({"decode": 4, "order": "decode-only", "now": now}).plans[0]
    told = {f.code: f.values for f in plan.warnings if f.code in SAID}
    assert told["plan.mixed"]["found"] == ("128 on decode@gpu1, decode@gpu3; 512 on decode@gpu2; unset on decode@gpu4")
    assert told["plan.left-alone"]["instances"] == "decode@gpu2"
    assert [t.instance for t in plan.targets] == [f"decode@gpu{n}" for n in range(1, 5)]
    assert "decode@gpu2" not in plan.services


def test_a_change_of_one_replica_says_that_the_fleet_will_be_mixed() -> None:
    plan = planned({"decode": 3, "order": "decode-only", "on": ["decode@gpu2"]}).plans[0]
    (told,) = [f for f in plan.warnings if f.code == "plan.mixed-after"]
    assert told.values["found"] == "unset on decode@gpu1, decode@gpu3; 512 on decode@gpu2"


def test_why_an_order_is_refused_names_the_floor_and_who_is_away() -> None:
    case = {"decode": 3, "order": "decode-only", "on": ["decode@gpu1"], "away": {"decode@gpu2": "503"}}
    (found,) = planned(case).findings
    assert found.values == {"service": "decode", "keep": 2, "replicas": 3, "serving": 2, "away": "decode@gpu2"}


def test_who_is_away_is_told_with_why() -> None:
    away = {"decode@gpu1": "503", "decode@gpu2": "silent", "decode@gpu3": "failed", "decode@gpu4": "loops"}
    plan = planned({"decode": 5, "order": "decode-only", "away": away}).plans[0]
    (told,) = [f for f in plan.warnings if f.code == "plan.away-now"]
    assert told.values["n"] == len(away)
    assert str(told.values["away"]).split(", ") == [
        "decode@gpu1: its health check answers 503",
        "decode@gpu2: its health check does not answer",
        "decode@gpu3: its unit is failed (exit-code)",
        "decode@gpu4: systemd started it 40 times again",
    ]


def test_health_that_answers_200_is_in_service() -> None:
    case = {"decode": 3, "order": "decode-only", "away": {"decode@gpu1": "well"}}
    assert drawn(planned(case).plans[0]) == drawn(planned({**case, "away": {}}).plans[0])


def counts(most: int) -> st.SearchStrategy[int]:
    return st.integers(1, most)


@st.composite
def fleets(draw: st.DrawFn) -> dict[str, Any]:
    """Any fleet of up to five replicas, any floors, any of them away or with the value already, any scope."""
    case: dict[str, Any] = {service: draw(counts(5)) for service in SERVICES}
    everywhere = {service: [f"{service}@gpu{n + 1}" for n in range(case[service])] for service in SERVICES}
    case["rolling"] = {
        service: {"max_unavailable": draw(counts(3)), "keep": draw(st.none() | st.integers(0, case[service]))}
        for service in SERVICES
    }
    case["knob_on"] = draw(st.sampled_from([["decode"], ["prefill", "decode"]]))
    case["order"] = "co-restart" if len(case["knob_on"]) > 1 else draw(st.sampled_from(["co-restart", "decode-only"]))
    instances = [i for one in everywhere.values() for i in one]
    ways = sorted(set(AWAY) - {"well"})
    case["away"] = draw(st.dictionaries(st.sampled_from(instances), st.sampled_from(ways), max_size=4))
    can_have = [i for service in case["knob_on"] for i in everywhere[service]]
    case["now"] = {i: draw(st.sampled_from(["512", "128"])) for i in draw(st.sets(st.sampled_from(can_have)))}
    if draw(st.booleans()):
        case["on"] = sorted(draw(st.sets(st.sampled_from(can_have), min_size=1)))
    drained = draw(st.sets(st.sampled_from(["prefill", "decode"])))
    case["drain"] = {service: {"deadline_s": 60.0} for service in sorted(drained)}
    if draw(st.integers(0, 3)) == 0:
        case = {key: value for key, value in case.items() if key not in {"order", "on"}}
        case["restart"] = draw(st.sampled_from([*SERVICES, *instances, "gpu1"]))
    return case


def offered(case: Mapping[str, Any]) -> tuple[Plan, ...]:
    """The plans; where there are none, it is for a reason that these cases can have."""
    planning = planned(case)
    if not planning.plans:
        allowed = {"plan.floor-never-holds", "plan.floor-broken", "plan.nothing-to-do"}
        assert {f.code for f in planning.findings if f.effect != "warn"} <= allowed
        assert any(f.effect != "warn" for f in planning.findings)
    return planning.plans


@settings(max_examples=40, deadline=None)
@given(fleets())
def test_every_wave_is_in_order_and_no_stage_takes_away_more_than_may_be(case: dict[str, Any]) -> None:
    fleet = fleet_of(case)
    for plan in offered(case):
        for steps in (plan.steps, plan.undo):
            stages = stages_of(steps)
            for wave in {stage.wave for stage in stages}:
                services = [stage.instances[0].split("@")[0] for stage in stages if stage.wave == wave]
                assert services == sorted(services, key=SERVICES.index)
                assert len(set(services)) == len(services)
                assert all(
                    services.index(need) < at for at, s in enumerate(services) for need in NEEDS[s] if need in services
                )
        for stage in stages_of(plan.steps):
            service = stage.instances[0].split("@")[0]
            most = fleet.services[service].rolling.max_unavailable if len(fleet.instances(service)) > 1 else 1
            assert {i.split("@")[0] for i in stage.instances} == {service}
            assert len(stage.instances) <= most
        waves = [stage.wave for stage in stages_of(plan.steps)]
        assert waves == sorted(waves)
        assert set(waves) == set(range(1, max(waves) + 1))


@settings(max_examples=40, deadline=None)
@given(fleets())
def test_every_instance_is_restarted_once_and_undone_once_the_last_wave_first(case: dict[str, Any]) -> None:
    for plan in offered(case):
        done = [i for stage in stages_of(plan.steps) for i in stage.instances]
        assert len(set(done)) == len(done)
        assert sorted(plan.services) == sorted(done)
        if plan.knob is None:
            assert plan.undo == ()
            continue
        undone = stages_of(plan.undo)
        assert sorted(i for stage in undone for i in stage.instances) == sorted(done)
        changed = {step.service for step in plan.steps if isinstance(step, RestartStep) and step.changed}
        for service in changed:
            mine = [s for s in stages_of(plan.steps) if s.instances[0].startswith(f"{service}@")]
            back = [s for s in undone if s.instances[0].startswith(f"{service}@")]
            assert back == mine[::-1]
        assert [s.wave for s in undone] == sorted((s.wave for s in undone), reverse=True)
        acts = sorted((s.kind, name(s)) for s in plan.steps if s.kind not in {"prune", "admit"})
        assert sorted((s.kind, name(s)) for s in plan.undo if s.kind != "admit") == acts


@settings(max_examples=40, deadline=None)
@given(fleets())
def test_one_replica_of_a_service_that_changes_goes_first(case: dict[str, Any]) -> None:
    for plan in offered(case):
        touched = [step for step in plan.steps if isinstance(step, RestartStep)]
        changed = {step.service for step in touched if step.changed}
        rolling = {one.service: one for one in plan.rolling}
        for service in changed:
            mine = [step for step in touched if step.service == service]
            first = [name(step) for step in mine if step.wave == 1]
            assert len(first) == 1
            one = rolling.get(service)
            assert (one is not None and one.canary is not None) == (len(mine) > 1)
            if one is not None and one.canary is not None:
                assert [one.canary.instance] == first
        assert all(one.canary is None for one in plan.rolling if one.service not in changed)
        assert set(rolling) == {s.service for s in touched if case[s.service] > 1}


@settings(max_examples=40, deadline=None)
@given(fleets())
def test_the_floor_holds_before_every_stage_that_takes_something_in_service_away(case: dict[str, Any]) -> None:
    fleet = fleet_of(case)
    for plan in offered(case):
        known = {i for i, _ in plan.incarnations} if plan.knob is None else {*case["away"]}
        away = set(case["away"]) & known  # of the others nobody looked, where single instances are restarted
        for stage in stages_of(plan.steps):
            service = stage.instances[0].split("@")[0]
            one = next((r for r in plan.rolling if r.service == service), None)
            if one is not None and not set(stage.instances) <= away:
                left = {*fleet.instances(service)} - away - set(stage.instances)
                assert len(left) >= one.keep
            away -= set(stage.instances)


@settings(max_examples=40, deadline=None)
@given(fleets())
def test_each_wave_ends_with_the_canary_request_and_only_there(case: dict[str, Any]) -> None:
    for plan in offered(case):
        for steps in (plan.steps, plan.undo):
            last = [at for at, step in enumerate(steps) if step.wave not in {s.wave for s in steps[at + 1 :]}]
            assert [at for at, step in enumerate(steps) if "canary" in step.gates] == last


@settings(max_examples=40, deadline=None)
@given(fleets())
def test_what_is_drained_is_restarted_and_given_back_at_the_same_routers(case: dict[str, Any]) -> None:
    fleet = fleet_of(case)
    for plan in offered(case):
        for steps in (plan.steps, plan.undo):
            for stage in stages_of(steps):
                drained = fleet.services[stage.instances[0].split("@")[0]].drain is not None
                for instance in stage.instances:
                    mine = [at for at, step in enumerate(steps) if name(step) == instance]
                    kinds = [steps[at].kind for at in mine if steps[at].kind != "write"]
                    again = kinds.index("drain") if drained and steps is plan.undo else 0  # told to a router before
                    assert kinds[again : again + 3] == (["drain", "restart", "admit"] if drained else ["restart"])
                    assert {*kinds[:again], *kinds[again + 3 :]} <= {"admit"}
                    acts = [at for at in mine if steps[at].kind in {"drain", "restart"}]
                    assert {steps[at].wave for at in acts} == {stage.wave}
            for at, step in enumerate(steps):
                if isinstance(step, DrainStep):
                    assert tuple(one.router for one in step.at) == fleet.instances("router")
                    back = next(s for s in steps[at:] if isinstance(s, AdmitStep) and name(s) == name(step))
                    assert back.at == step.at


@settings(max_examples=40, deadline=None)
@given(fleets())
def test_a_router_that_is_restarted_is_told_again_of_everything_that_was_drained_before(case: dict[str, Any]) -> None:
    for plan in offered(case):
        for steps in (plan.steps, plan.undo):
            drains = [(at, name(step)) for at, step in enumerate(steps) if isinstance(step, DrainStep)]
            routers = [
                (at, name(s)) for at, s in enumerate(steps) if isinstance(s, RestartStep) and s.service == "router"
            ]
            for at, router in routers:
                again = {
                    name(step)
                    for step in steps[at:]
                    if isinstance(step, AdmitStep)
                    and step.wave == steps[at].wave
                    and router in [r.router for r in step.at]
                }
                before = {i for drained_at, i in drains if drained_at < at or steps is plan.undo}
                assert again >= before


@settings(max_examples=40, deadline=None)
@given(fleets())
def test_a_fleet_without_replicas_is_planned_in_one_wave_in_the_order_of_its_services(case: dict[str, Any]) -> None:
    alone = {key: value for key, value in case.items() if key not in {*SERVICES, "on", "now", "away", "restart"}}
    for plan in offered(alone):
        assert plan.rolling == ()
        assert {step.wave for step in (*plan.steps, *plan.undo)} == {1}
        assert list(plan.services) == [f"{s}@gpu1" for s in fleet_of(alone).restarts[plan.order]]
