"""The plan of a knob change: steps, gates, undo and files for each restart order, or why there is no plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from policies.facts import UnitFacts
from policies.fleet import Fleet
from policies.plan import Plan, RestartStep, Step, WriteStep
from policies.planning.knob import Planning
from tests.policies import builders as b
from tests.policies.systemd_tree import file_text

STEPS = b.golden("plans/steps.json")
HEAD = "# written by clawback: edits made here by hand are seen as drift and stop the next change\n[Service]\n"
OURS = f'{HEAD}Environment="{b.ENV}=512"\n'


def told(step: Step) -> str:
    """A step as the golden cases write it."""
    if not isinstance(step, RestartStep):
        return f"{step.kind} {step.service}@{step.host}"
    changed = " (changed)" if step.changed else ""
    return f"restart {step.service}@{step.host}{changed}: {' '.join(step.gates)}"


def without_wave(step: Step) -> Step:
    """A step with its gates but the canary: that one is behind the last restart of a wave."""
    gates = tuple(gate for gate in step.gates if gate != "canary")
    return step.model_copy(update={"wave": 1, "gates": gates})


def planned(case: Mapping[str, Any]) -> tuple[Fleet, dict[str, UnitFacts], Planning]:
    """Fleet, facts and planning of a golden case."""
    reported = {"reported": {"path": case["reported"]}} if "reported" in case else {}
    knob = b.knob(on=tuple(case.get("on", ("decode",))), **reported)
    fleet = b.fleet(**case.get("fleet", {}), knobs=()).model_copy(update={"knobs": {knob.name: knob}})
    running = case.get("running")
    answers: dict[str, Any] = {"running": running}
    if running == "unreadable":
        answers = {"processes": (b.process(None, answer="unreadable"),)}
    if "dropin" in case:
        answers["dropins"] = {"zz-clawback.conf": case["dropin"]}
    if "fragment" in case:
        answers["fragment"] = case["fragment"]
    seen = b.facts(fleet, decode=b.unit(**answers))
    aim: dict[str, Any] = {"orders": (case["order"],)}
    if "instances" in case:
        aim["instances"] = tuple(case["instances"])
    return fleet, seen, b.planning(fleet, seen, case.get("value", "512"), **aim)


@pytest.mark.parametrize("case", STEPS, ids=b.ids(STEPS))
def test_the_steps_and_gates_of_an_order(case: dict[str, Any]) -> None:
    (plan,) = planned(case)[2].plans
    assert [told(step) for step in plan.steps] == case["steps"]


@pytest.mark.parametrize("case", STEPS, ids=b.ids(STEPS))
def test_the_undo_is_the_same_way_with_the_texts_turned_around(case: dict[str, Any]) -> None:
    (plan,) = planned(case)[2].plans
    assert [told(step) for step in plan.undo] == case.get("undo", case["steps"])
    done = {(step.kind, step.service, step.host): step for step in plan.steps}
    for undo in plan.undo:
        do = done.pop((undo.kind, undo.service, undo.host))
        if isinstance(do, WriteStep):
            assert isinstance(undo, WriteStep)
            assert (undo.path, undo.before, undo.text) == (do.path, do.text, do.before)
            assert do.before != do.text
        else:
            assert without_wave(undo) == without_wave(do)
    assert done == {}


@pytest.mark.parametrize("case", STEPS, ids=b.ids(STEPS))
def test_a_plan_names_every_file_that_was_read_or_will_be_written_and_every_life(case: dict[str, Any]) -> None:
    fleet, seen, planning = planned(case)
    (plan,) = planning.plans
    instances = [i for service in fleet.restarts[plan.order] for i in fleet.instances(service)]
    if "instances" in case:
        instances = case["instances"]
    known = {(f.host, f.path): (f.sha256, f.mode) for f in plan.files}
    for instance in instances:
        unit = seen[instance]
        for file in (unit.fragment, *unit.dropins, *unit.env_files):
            assert known.pop((unit.host, file.path)) == (file.sha256, 0o644)
        assert known.pop((unit.host, unit.dropin_path), (None, None)) == (None, None)
    assert known == {}
    assert list(plan.incarnations) == [(i, seen[i].incarnation) for i in instances]
    assert list(plan.services) == instances


def test_one_plan_for_each_order_the_default_first() -> None:
    assert [plan.order for plan in b.plans()] == ["co-restart", "decode-only"]
    assert all(plan.value == "512" and plan.knob == "TARGET_CTAS" for plan in b.plans())


@pytest.mark.parametrize(
    ("manager", "argv"),
    [
        ("system", ("systemctl", "restart", "--no-block", "sgl-decode.service")),
        ("user", ("systemctl", "--user", "restart", "--no-block", "sgl-decode.service")),
    ],
)
def test_the_argument_list_speaks_to_the_manager_of_the_host(manager: str, argv: tuple[str, ...]) -> None:
    fleet = b.fleet(manager=manager)
    last = b.planning(fleet, b.facts(fleet), orders=("decode-only",)).plans[0].steps[-1]
    assert isinstance(last, RestartStep)
    assert last.argv == argv


def test_several_knobs_of_one_unit_keep_each_others_lines() -> None:
    other = b.knob(name="LOG_LEVEL", env="SGLANG_LOG_LEVEL", type="str", range=None)
    fleet = b.fleet(knobs=(other,))
    text = f'{HEAD}Environment="SGLANG_LOG_LEVEL=info"\n'
    seen = b.facts(fleet, decode=b.unit(dropins={"zz-clawback.conf": text}))
    (plan,) = b.planning(fleet, seen, orders=("decode-only",)).plans
    write = next(step for step in plan.steps if isinstance(step, WriteStep))
    assert write.text == f'{HEAD}Environment="SGLANG_LOG_LEVEL=info"\nEnvironment="{b.ENV}=512"\n'
    away = b.facts(fleet, decode=b.unit(dropins={"zz-clawback.conf": write.text or ""}, running="512"))
    (back,) = b.planning(fleet, away, None, orders=("decode-only",)).plans
    assert [step.text for step in back.steps if isinstance(step, WriteStep)] == [text]


def codes(planning: Planning) -> list[str]:
    """Codes of the findings when there is no plan."""
    assert planning.plans == ()
    return [f.code for f in planning.findings]


def test_nothing_to_do_needs_the_files_and_the_process() -> None:
    fleet = b.fleet()
    settled = b.unit(dropins={"zz-clawback.conf": OURS}, running="512")
    assert codes(b.planning(fleet, b.facts(fleet, decode=settled))) == ["plan.nothing-to-do"]
    assert codes(b.planning(fleet, b.facts(fleet), None)) == ["plan.nothing-to-do"]
    for changes in (
        {"processes": ()},
        {"processes": (b.process("512", main=False),)},
        {"processes": (b.process("512  # tuned"),)},
        {"processes": (b.process(None),)},
        {"processes": (b.process(None, answer="forbidden"),)},
    ):
        assert b.planning(fleet, b.facts(fleet, decode=settled.model_copy(update=changes))).plans != ()


def test_one_instance_that_lacks_the_value_is_reason_enough_for_a_plan() -> None:
    fleet = b.fleet(hosts=("gpu1", "gpu2"))
    seen = b.facts(fleet, decode=b.unit(dropins={"zz-clawback.conf": OURS}, running="512"))
    assert codes(b.planning(fleet, seen)) == ["plan.nothing-to-do"]
    seen["decode@gpu2"] = seen["decode@gpu2"].model_copy(update={"dropins": ()})
    plan = b.planning(fleet, seen).plans[0]
    assert [told(s) for s in plan.steps if isinstance(s, WriteStep)] == ["write decode@gpu2"]


def test_an_environment_file_that_wins_is_named_and_nothing_is_planned() -> None:
    fleet = b.fleet()
    unit = b.unit(
        fragment="[Service]\nEnvironmentFile=/etc/sgl/prefill-0.env\n",
        env_files={
            "/etc/sgl/prefill-0.env": f'{b.ENV}=512  # tuned 2026-11\nSGLANG_LOG_LEVEL="info"  # quiet\n'
            "export SGLANG_EXTRA=1\n"
        },
    )
    planning = b.planning(fleet, b.facts(fleet, decode=unit))
    assert codes(planning) == [
        "plan.place-loses",
        "envfile.inline-comment",
        "envfile.inline-comment",
        "envfile.export",
    ]
    assert planning.findings[0].values["effective"] == "512  # tuned 2026-11"
    assert [f.values.get("value") for f in planning.findings[1:]] == ["512  # tuned 2026-11", "info# quiet", "1"]


def test_every_instance_that_refuses_is_named() -> None:
    fleet = b.fleet(hosts=("gpu1", "gpu2"))
    seen = b.facts(fleet, decode=b.unit(dropins={"zzz.conf": f"[Service]\nEnvironment={b.ENV}=1\n"}))
    seen["router@gpu1"] = seen["router@gpu1"].model_copy(update={"load_state": "not-found"})
    planning = b.planning(fleet, seen)
    refused = [(f.code, f.values["instance"]) for f in planning.findings if f.effect == "refuse"]
    assert refused == [
        ("plan.place-loses", "decode@gpu1"),
        ("plan.place-loses", "decode@gpu2"),
        ("plan.unit-not-loaded", "router@gpu1"),
    ]


@pytest.mark.parametrize("state", ["not-found", "masked", "bad-setting", "error"])
def test_a_unit_that_is_not_loaded_refuses_the_orders_that_touch_it(state: str) -> None:
    fleet = b.fleet()
    seen = b.facts(fleet, router=b.unit("router@gpu1", load_state=state))
    assert codes(b.planning(fleet, seen)) == ["plan.unit-not-loaded"]
    assert b.planning(fleet, seen, orders=("decode-only",)).plans != ()


def warned(plan: Plan) -> list[tuple[str, Any]]:
    """Codes and instances of a plan's warnings."""
    return [(f.code, f.values.get("instance")) for f in plan.warnings]


def test_what_is_wrong_already_is_told_before_anything_is_restarted() -> None:
    fleet = b.fleet()
    slow = b.unit("prefill@gpu1", type="notify", timeout_start_s=90.0)
    dead = b.unit(active_state="failed", sub_state="failed", result="exit-code")
    plan = b.planning(fleet, b.facts(fleet, prefill=slow, decode=dead)).plans[0]
    assert warned(plan) == [
        ("plan.start-timeout-short", "prefill@gpu1"),
        ("plan.start-limit-never", "prefill@gpu1"),
        ("plan.not-active-now", "decode@gpu1"),
    ]
    assert plan.warnings[0].values["timeout_start_s"] == 90.0


@pytest.mark.parametrize(
    ("kind", "timeout_start_s"), [("simple", 90.0), ("notify", None), ("notify", 300.0), ("notify", 3000.0)]
)
def test_a_start_that_has_time_enough_is_not_warned_of(kind: str, timeout_start_s: float | None) -> None:
    fleet = b.fleet()
    unit = b.unit(type=kind, timeout_start_s=timeout_start_s)
    assert warned(b.planning(fleet, b.facts(fleet, decode=unit)).plans[0]) == []


def test_a_plan_to_repair_a_crash_loop_does_not_depend_on_which_life_it_is() -> None:
    fleet = b.fleet()
    first = b.planning(fleet, b.facts(fleet, decode=b.unit(n_restarts=4, pid=3001))).plans[1]
    later = b.planning(fleet, b.facts(fleet, decode=b.unit(n_restarts=5, pid=3002))).plans[1]
    assert first.digest == later.digest
    assert warned(first) == [("plan.crash-looping", "decode@gpu1")]


def test_odd_lines_of_the_unit_files_are_warned_of() -> None:
    fleet = b.fleet()
    unit = b.unit(fragment="[Service]\nEnvironmentFile=/etc/e\n", env_files={"/etc/e": "export A=1\n"})
    (plan,) = b.planning(fleet, b.facts(fleet, decode=unit), orders=("decode-only",)).plans
    assert [f.code for f in plan.warnings] == ["envfile.export"]


def test_a_file_that_two_units_read_is_named_once() -> None:
    fleet = b.fleet()
    common: dict[str, Any] = {
        "fragment": "[Service]\nEnvironmentFile=/etc/common\n",
        "env_files": {"/etc/common": "A=1\n"},
    }
    seen = b.facts(fleet, decode=b.unit(**common), prefill=b.unit("prefill@gpu1", **common))
    plan = b.planning(fleet, seen).plans[0]
    assert [f.path for f in plan.files].count("/etc/common") == 1
    assert ("gpu1", "/etc/common", file_text("/etc/common", "A=1\n").sha256) in {
        (f.host, f.path, f.sha256) for f in plan.files
    }
