"""Contracts between services: one side alone is refused, all go in one wave, and what does not agree is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bot.messages import strict
from policies.contracts import agreements, mismatches, one_sided, partners
from policies.facts import UnitFacts
from policies.finding import Finding
from policies.fleet import Contract, Fleet, Knob, RollingEntry
from policies.gates import contract as gate
from policies.plan import Agreement, Plan, RestartStep, WriteStep
from policies.planning.knob import Planning
from tests.policies import builders as b
from tests.policies import deploy_cases

SIDES = {"prefill": "PREFILL_PAGE_SIZE", "decode": "DECODE_PAGE_SIZE"}
PATHS = {"prefill": "page_size", "decode": "args.page_size"}
CASES = b.golden("plans/contracts.json")


def page_size(**more: Any) -> Knob:
    return b.knob(env=SIDES["prefill"], envs=SIDES, on=tuple(SIDES), restarts=("co-restart",), **more)


def fleet(decode_on: tuple[str, ...] = ("gpu1",), rolling: dict[str, Any] | None = None, **more: Any) -> Fleet:
    """prefill and decode agree on TARGET_CTAS, which each of them calls otherwise."""
    plain = b.fleet(hosts=decode_on, **more)
    contract = Contract(name="page-size", knob="TARGET_CTAS", reported=PATHS)
    decode = plain.services["decode"].model_copy(update={"rolling": RollingEntry.model_validate(rolling or {})})
    return plain.model_copy(
        update={
            "knobs": {"TARGET_CTAS": page_size()},
            "contracts": {"page-size": contract},
            "services": {**plain.services, "decode": decode},
        }
    )


def unit(instance: str, configured: str | None, reports: str | None = None) -> UnitFacts:
    """An instance whose unit gives that value, and whose engine reports that one."""
    service = instance.split("@")[0]
    line = "" if configured is None else f"Environment={SIDES[service]}={configured}\n"
    made = b.unit(instance, fragment=f"[Service]\n{line}ExecStart=/opt/sgl/bin/python\n")
    said = {} if reports is None else {"page_size": int(reports), "args": {"page_size": int(reports)}}
    main = made.processes[0].model_copy(
        update={
            "variable": SIDES[service],
            "answer": "absent" if configured is None else "present",
            "value": configured,
        }
    )
    info = b.answer(body=json.dumps(said), id="server_info")
    return made.model_copy(update={"processes": (main,), "http": (info,)})


def seen(of: Fleet, case: dict[str, Any]) -> dict[str, UnitFacts]:
    found = b.facts(of)
    for instance in [i for service in SIDES for i in of.instances(service)]:
        has, reports = case.get("has", {}), case.get("reports", {})
        found[instance] = unit(instance, has.get(instance, "64"), reports.get(instance))
    return found


def planned(case: dict[str, Any]) -> tuple[Fleet, Planning]:
    of = fleet(tuple(case.get("decode_on", ("gpu1",))), case.get("rolling"))
    aim: dict[str, Any] = {"orders": ("co-restart",)}
    if "instances" in case:
        aim["instances"] = tuple(case["instances"])
    return of, b.planning(of, seen(of, case), case.get("value", "128"), **aim)


def told(plan: Plan) -> list[str]:
    lines = []
    for step in plan.steps:
        if isinstance(step, WriteStep):
            lines.append(f"{step.wave} write {step.service}@{step.host} {(step.text or '').splitlines()[-1]}")
        elif isinstance(step, RestartStep):
            gate_of = " +contract" if "contract" in step.gates else ""
            lines.append(f"{step.wave} restart {step.service}@{step.host}{gate_of}")
    return lines


@pytest.mark.parametrize("case", CASES, ids=b.ids(CASES))
def test_what_is_planned_of_a_setting_that_must_agree(case: dict[str, Any]) -> None:
    _, planning = planned(case)
    if "refused" in case:
        assert planning.plans == ()
        found = next(one for one in planning.findings if one.code.startswith("contract."))
        assert (found.code, found.effect) == (case["refused"], "refuse")
        for text in case["says"]:
            assert text in strict(found)
        return
    (plan,) = planning.plans
    assert told(plan) == case["steps"]


def test_what_engines_must_report_is_in_the_plan_and_back_is_what_was() -> None:
    _, planning = planned({"has": {"decode@gpu1": "64", "prefill@gpu1": "64"}})
    (plan,) = planning.plans
    assert plan.agreements == (
        Agreement(contract="page-size", instance="prefill@gpu1", path="page_size", then="128", back="64"),
        Agreement(contract="page-size", instance="decode@gpu1", path="args.page_size", then="128", back="64"),
    )
    assert plan.digest != plan.model_copy(update={"agreements": ()}).digest


def test_a_plan_without_contracts_keeps_its_digest() -> None:
    (plan, *_) = b.plans()
    assert plan.agreements == ()
    assert "agreements" not in plan.digest


def test_a_mismatch_that_is_there_is_told_with_what_each_has() -> None:
    of = fleet()
    files = seen(of, {"has": {"decode@gpu1": "32"}})
    (found,) = mismatches(of, files)
    assert strict(found) == ("the contract `page-size` does not hold: the files give prefill@gpu1 64, decode@gpu1 32")
    reported = seen(of, {"reports": {"prefill@gpu1": "64", "decode@gpu1": "1"}})
    (found,) = mismatches(of, reported)
    assert "the engines report prefill@gpu1 64, decode@gpu1 1" in strict(found)
    assert mismatches(of, seen(of, {"reports": {"prefill@gpu1": "64"}})) == ()  # one side says nothing: not known
    assert mismatches(of, {"decode@gpu1": files["decode@gpu1"]}) == ()
    assert mismatches(b.fleet(), files) == ()


def test_replicas_of_one_service_that_differ_are_no_matter_of_contracts() -> None:
    of = fleet(("gpu1", "gpu2"))
    two = {i: one for i, one in seen(of, {"has": {"decode@gpu2": "32"}}).items() if i.startswith("decode")}
    assert mismatches(of, two) == ()


def test_a_deploy_must_report_what_the_other_side_reports() -> None:
    of = fleet()
    facts = seen(of, {"reports": {"prefill@gpu1": "64", "decode@gpu1": "64"}})
    (one,) = agreements(of, "decode", {"decode@gpu1": (None, None)}, facts)
    assert (one.path, one.then, one.back) == ("args.page_size", "64", "64")
    assert agreements(of, "router", {"router@gpu1": (None, None)}, facts) == ()
    silent = seen(of, {})
    assert agreements(of, "decode", {"decode@gpu1": (None, None)}, silent) == ()
    assert partners(of, "decode") == ("prefill@gpu1",)
    assert partners(of, "router") == ()


def test_the_steps_of_a_deploy_ask_for_the_contract_in_both_directions() -> None:
    info = unit("prefill@gpu1", None, "64").model_dump(mode="json")["http"]
    agreed = {"ref": "v2", "contracts": {"page-size": PATHS}, "units": {"prefill@gpu1": {"http": info}}}
    plans = deploy_cases.planned(agreed)[2].plans
    assert plans
    for plan in plans:
        assert [(one.instance, one.then, one.back) for one in plan.agreements] == [("decode@gpu1", "64", "64")]
        for step in (*plan.steps, *plan.undo):
            if isinstance(step, RestartStep):
                assert ("contract" in step.gates) is (step.service == "decode")
        assert "contract.unknown" not in {one.code for one in plan.warnings}
    silent = deploy_cases.planned({"ref": "v2", "contracts": {"page-size": PATHS}})[2].plans
    for plan in silent:
        assert plan.agreements == ()
        (warning,) = [one for one in plan.warnings if one.code == "contract.unknown"]
        assert "the other side of `decode` reports no one value now" in strict(warning)
    plain = deploy_cases.planned({"ref": "v2", "units": agreed["units"]})[2].plans
    assert all("contract" not in step.gates for plan in plain for step in plan.steps)


@pytest.mark.parametrize(
    ("body", "status", "answer", "code"),
    [
        ('{"page_size": 64}', 200, "pass", "gate.contract.holds"),
        ('{"page_size": "64"}', 200, "pass", "gate.contract.holds"),
        ('{"page_size": 1}', 200, "fail", "gate.contract.broken"),
        ('{"page": 64}', 200, "inconclusive", "gate.contract.not-told"),
        ('{"page_size": 64}', 503, "inconclusive", "gate.contract.not-told"),
        ("", None, "inconclusive", "gate.contract.not-told"),
    ],
)
def test_an_engine_that_reports_another_value_fails_and_one_that_says_nothing_is_no_pass(
    body: str, status: int | None, answer: str, code: str
) -> None:
    agreed = Agreement(contract="page-size", instance="decode@gpu1", path="page_size", then="64", back=None)
    said = None if status is None else b.answer(status, body)
    verdict = gate.judge(agreed, said, "64")
    (found,) = verdict.findings
    assert (verdict.answer, found.code) == (answer, code)
    assert strict(found)


def test_of_several_contracts_the_worst_answer_counts() -> None:
    agreed = Agreement(contract="x", instance="decode@gpu1", path="page_size", then="64", back=None)
    good = gate.judge(agreed, b.answer(200, '{"page_size": 64}'), "64")
    bad = gate.judge(agreed, b.answer(200, '{"page_size": 1}'), "64")
    silent = gate.judge(agreed, b.answer(200, "{}"), "64")
    assert [gate.all_of(list(some)).answer for some in ((good, good), (good, silent), (silent, bad))] == [
        "pass",
        "inconclusive",
        "fail",
    ]
    assert len(gate.all_of([silent, bad]).findings) == 2


def test_one_side_may_be_brought_to_what_the_other_has() -> None:
    of = fleet()
    facts = seen(of, {"has": {"decode@gpu1": "32"}})
    knob = of.knobs["TARGET_CTAS"]
    assert one_sided(of, knob, "64", ("decode@gpu1",), facts) is None
    refused = one_sided(of, knob, "128", ("decode@gpu1",), facts)
    assert isinstance(refused, Finding)
    assert one_sided(of, b.knob(), "128", ("decode@gpu1",), b.facts(b.fleet())) is None or refused.effect == "refuse"


def test_a_knob_knows_what_each_service_calls_it() -> None:
    knob = page_size()
    assert [knob.variable(service) for service in ("prefill", "decode", "router")] == [
        "PREFILL_PAGE_SIZE",
        "DECODE_PAGE_SIZE",
        "PREFILL_PAGE_SIZE",
    ]
    assert (knob.variables, knob.at("decode").env) == (("PREFILL_PAGE_SIZE", "DECODE_PAGE_SIZE"), "DECODE_PAGE_SIZE")
    assert b.knob().at("decode") == b.knob()
