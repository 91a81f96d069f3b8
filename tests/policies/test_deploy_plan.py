"""Planning deploys and rollbacks, case by case: JSON in, steps, undo, warnings or refusals out."""

from __future__ import annotations

from typing import Any

import pytest

from policies.case import Case
from policies.decision import decide
from policies.plan import Plan, SwitchStep
from policies.replan import differences
from tests.policies import builders as b
from tests.policies.deploy_cases import planned, told
from tests.policies.test_plan_digest import edited, leaves

CASES = b.golden("plans/deploys.json")
PLANNED = [case for case in CASES if "steps" in case]
REFUSED = [case for case in CASES if "refused" in case]
BESIDE = {"estimate", "warnings", "load", "versions", "contents"}
WAVED = {"rolling", "agreements"}  # in the digest of a plan that has replicas, or contracts
FIXED = {"kind", "gates", "effect", "word", "fleet_sha256"}


def plan_of(case: dict[str, Any]) -> Plan:
    plans = planned(case)[2].plans
    assert plans, [f.code for f in planned(case)[2].findings]
    return plans[0]


@pytest.mark.parametrize("case", PLANNED, ids=b.ids(PLANNED))
def test_a_deploy_is_planned_as_these_steps(case: dict[str, Any]) -> None:
    plan = plan_of(case)
    assert [told(step) for step in plan.steps] == case["steps"]


@pytest.mark.parametrize("case", PLANNED, ids=b.ids(PLANNED))
def test_its_undo_is_these_steps_and_every_odd_thing_is_told(case: dict[str, Any]) -> None:
    plan = plan_of(case)
    assert [told(step) for step in plan.undo] == case["undo"]
    assert [f.code for f in plan.warnings if not f.code.startswith("plan.")] == case.get("warnings", [])
    assert [f.code for f in plan.contents] == case["contents"]


@pytest.mark.parametrize("case", REFUSED, ids=b.ids(REFUSED))
def test_a_deploy_that_cannot_be_is_refused_before_anything_is_planned(case: dict[str, Any]) -> None:
    planning = planned(case)[2]
    assert planning.plans == ()
    assert [f.code for f in planning.findings] == case["refused"]
    said = planning.findings[0].values
    assert {key: said[key] for key in case.get("values", {})} == case.get("values", {})


def test_there_are_cases_of_every_strategy_and_both_words() -> None:
    assert len(CASES) >= 70
    assert {case.get("strategy", "releases") for case in PLANNED} == {"releases", "variable", "command"}
    assert {"ref" in case for case in PLANNED} == {True, False}


PLAIN: dict[str, Any] = {"ref": "v2", "order": "decode-only"}


def test_the_digest_covers_the_manifest_the_link_and_what_is_read_back() -> None:
    plan = plan_of(PLAIN)
    others: list[dict[str, Any]] = [
        {**PLAIN, "verified": {"v2": {"manifest_sha256": "e" * 64}}},
        {**PLAIN, "now": "v0"},
        {**PLAIN, "runs": "v0"},
        {**PLAIN, "unread": "it answers 503"},
        {**PLAIN, "with": {"keep": 9}},
        {**PLAIN, "units": {"decode@gpu1": {"incarnation": b.life(77).model_dump()}}},
    ]
    digests = {plan_of(case).digest for case in others}
    assert len(digests) == len(others)
    assert plan.digest not in digests
    assert plan_of(PLAIN).digest == plan.digest
    assert Plan.model_validate_json(plan.model_dump_json()).digest == plan.digest


def test_what_a_release_says_of_itself_and_what_was_proven_before_are_not_in_the_digest() -> None:
    plan = plan_of(PLAIN)
    assert plan_of({**PLAIN, "changes": "faster"}).digest == plan.digest
    assert plan_of({**PLAIN, "there": ["v3", "v2", "v1"]}).digest == plan.digest


def test_a_release_that_was_put_there_anew_is_told_by_its_manifest() -> None:
    moved = plan_of({**PLAIN, "verified": {"v2": {"manifest_sha256": "e" * 64}}})
    found = differences(plan_of(PLAIN), moved)
    assert [(f.code, f.values.get("path")) for f in found] == [("replan.file", "/srv/decode/releases/v2/manifest.json")]
    (value,) = differences(plan_of(PLAIN), plan_of({**PLAIN, "now": "v0", "runs": "v1"}))
    assert (value.code, value.values["before"], value.values["now"]) == ("replan.value", "v1", "v0")


DUMPED = plan_of(PLAIN).model_dump(mode="json")
PLACES = [p for p in leaves(DUMPED) if p[0] not in BESIDE | WAVED and not FIXED & set(p) and p[-1] != "policy"]


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(str(part) for part in path))
def test_any_one_field_of_a_deploy_that_is_edited_makes_it_another_plan(path: tuple[str | int, ...]) -> None:
    assert Plan.model_validate(edited(DUMPED, path)).digest != plan_of(PLAIN).digest


def test_every_release_folder_and_link_of_a_plan_lies_below_the_declared_path() -> None:
    for case in PLANNED:
        for step in plan_of(case).steps:
            if isinstance(step, SwitchStep):
                assert step.releases.place(step.to or "").startswith(f"{step.releases.path}/")
                assert ".." not in step.releases.place(step.to or "")


def case_of(word: str, **rule: object) -> Case:
    fleet = b.fleet(rules=({**b.RULE, "match": rule},))
    return Case(word, b.ANA, fleet, None, ("decode",), "v2", (), b.NOW)  # type: ignore[arg-type]  # a word of a case


@pytest.mark.parametrize("word", ["deploy", "rollback"])
@pytest.mark.parametrize(
    ("match", "outcome"),
    [
        ({"kind": "deploy"}, "needs"),
        ({"service": "decode"}, "needs"),
        ({}, "needs"),
        ({"kind": "restart"}, "refused"),
        ({"kind": "knob"}, "refused"),
        ({"service": "router"}, "refused"),
        ({"intent": "restart"}, "refused"),
    ],
)
def test_rules_about_deploys_decide_and_those_about_restarts_and_knobs_do_not(
    word: str, match: dict[str, object], outcome: str
) -> None:
    assert decide(case_of(word, **match)).outcome == outcome


def test_a_rule_about_rollbacks_is_none_about_deploys() -> None:
    assert decide(case_of("rollback", intent="rollback")).outcome == "needs"
    assert decide(case_of("deploy", intent="rollback")).outcome == "refused"


def test_a_rollback_passes_a_freeze_and_a_deploy_does_not() -> None:
    freeze = {"name": "always", "cron": "0 0 * * *", "for_s": 90000.0}
    fleet = b.fleet(rules=({**b.RULE, "match": {"kind": "deploy"}},), freezes=(freeze,))
    deploy = decide(Case("deploy", b.ANA, fleet, None, ("decode",), "v2", (), b.NOW))
    rollback = decide(Case("rollback", b.ANA, fleet, None, ("decode",), "v1", (), b.NOW))
    assert (deploy.outcome, rollback.outcome) == ("refused", "needs")
