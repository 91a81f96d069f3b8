"""Gates: each code of each gate as data. No data is never pass, and garbage is no text."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from policies import gates
from policies.deploys.seen import VersionSeen
from policies.facts import Incarnation, PortOwner
from policies.finding import Verdict
from policies.gates import canary, contract, environment, health, incarnation, port, reported, version
from policies.plan import Agreement, GateKind
from policies.proof import prove
from tests.policies import builders as b
from tests.shared import ROOT

GOLDEN_GATES = ("incarnation", "port", "health", "canary", "reported", "version", "contract", "admitted")
CASES = {gate: b.golden(f"gates/{gate}.json") for gate in GOLDEN_GATES}
BEFORE, AFTER = [4100, 410000, "aa11"], [9002, 900200, "bb22"]
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda below: st.one_of(
        st.lists(below, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(["choices", "text", "message", "content", "a"]), st.text()), below),
    ),
    max_leaves=12,
)
GIVEN = settings(max_examples=100, deadline=None)


def cases(gate: str) -> pytest.MarkDecorator:
    """Parametrization over a gate's golden cases."""
    return pytest.mark.parametrize("case", CASES[gate], ids=b.ids(CASES[gate]))


def life(fields: list[Any]) -> Incarnation:
    """An incarnation from its three fields."""
    return Incarnation(main_pid=fields[0], started=fields[1], invocation_id=fields[2])


def body(case: dict[str, Any]) -> str:
    """The body as text."""
    return str(case["text"]) if "text" in case else json.dumps(case["body"])


def holds(verdict: Verdict, case: dict[str, Any]) -> None:
    """The verdict is the one of the case, with one finding whose effect fits."""
    assert (verdict.answer, verdict.findings[0].code) == (case["answer"], case["code"])
    assert verdict.findings[0].effect == ("allow" if case["answer"] == "pass" else "refuse")
    assert Verdict.model_validate_json(verdict.model_dump_json()) == verdict


@cases("incarnation")
def test_a_restart_is_believed_when_the_life_is_another_one(case: dict[str, Any]) -> None:
    verdict = incarnation.judge(
        "decode@gpu1",
        life(case.get("before", BEFORE)),
        life(case.get("now", AFTER)),
        active_state=case.get("active_state", "active"),
        sub_state=case.get("sub_state", "running"),
        result=case.get("result", "success"),
        n_restarts=case.get("n_restarts", 0),
        waited_s=12.5,
        other=case.get("other", False),
        first=case.get("first", ""),
    )
    holds(verdict, case)
    assert verdict.findings[0].values["waited_s"] == 12.5


@cases("port")
def test_a_port_is_believed_when_the_unit_itself_listens(case: dict[str, Any]) -> None:
    owner = PortOwner.model_validate({"port": 30000, **case["owner"]}) if case["owner"] else None
    verdict = port.judge("prefill@gpu1", owner, life(AFTER), waited_s=1.0)
    holds(verdict, case)
    if owner is not None:
        assert verdict.findings[0].values["pid"] == owner.pid
        assert port.taken(owner) is (case["code"] == "gate.port.foreign")
    else:
        assert not port.taken(owner)


@cases("health")
def test_health_is_believed_when_it_answers_200_often_enough(case: dict[str, Any]) -> None:
    said = b.answer(case["status"], error=case.get("error")) if case.get("asked", True) else None
    holds(health.judge("decode@gpu1", said, confirmed=case["confirmed"], waited_s=68.0), case)


@cases("canary")
def test_a_canary_is_believed_when_its_own_text_comes_back(case: dict[str, Any]) -> None:
    holds(canary.judge("router", b.answer(case.get("status", 200), body(case)), "n0nce"), case)


def test_a_canary_that_was_not_asked_is_no_pass() -> None:
    holds(canary.judge("router", None, "4"), {"answer": "inconclusive", "code": "gate.canary.not-asked"})


@cases("reported")
def test_an_engine_is_believed_when_it_reports_the_very_value(case: dict[str, Any]) -> None:
    assert reported.reported_value(body(case), case["path"]) == case["reported"]
    said = b.answer(case.get("status", 200), body(case))
    holds(reported.judge("decode@gpu1", said, case["path"], case.get("wanted", "512")), case)


@cases("version")
def test_a_version_is_believed_when_exactly_it_is_read_back(case: dict[str, Any]) -> None:
    said = VersionSeen(text=case.get("text"), source="http://127.0.0.1:1/version", error=case.get("error"))
    holds(version.judge("decode@gpu1", said, case["wanted"]), case)


@cases("contract")
def test_a_contract_is_believed_when_the_engine_reports_what_the_other_side_has(case: dict[str, Any]) -> None:
    agreement = Agreement(
        contract="page-size", instance="decode@gpu1", path=case["path"], then=case["wanted"], back=None
    )
    verdict = contract.judge(agreement, b.answer(case.get("status", 200), body(case)), case["wanted"])
    holds(verdict, case)
    assert verdict.findings[0].values["wanted"] == case["wanted"]


def test_one_instance_that_breaks_a_contract_breaks_it_for_all_of_a_look() -> None:
    agreement = Agreement(contract="page-size", instance="decode@gpu1", path="page_size", then="64", back=None)
    judged = {
        size: contract.judge(agreement, b.answer(200, json.dumps({"page_size": size})), "64") for size in (64, 32)
    }
    silent = contract.judge(agreement, None, "64")
    assert contract.all_of([judged[64], judged[64]]).answer == "pass"
    assert contract.all_of([judged[64], silent]).answer == "inconclusive"
    worst = contract.all_of([judged[64], silent, judged[32]])
    assert (worst.answer, len(worst.findings)) == ("fail", 3)


def test_an_engine_that_was_not_asked_is_no_pass() -> None:
    holds(reported.judge("d@h", None, "a", "512"), {"answer": "inconclusive", "code": "gate.reported.no-answer"})


@pytest.mark.parametrize(
    ("processes", "answer", "code"),
    [
        ([("512", "present", True)], "pass", "gate.environment.live"),
        ([("512", "present", True), (None, "unreadable", False)], "pass", "gate.environment.live"),
        ([("512  # tuned", "present", True)], "fail", "gate.environment.not-live"),
        ([(None, "absent", True)], "fail", "gate.environment.not-live"),
        ([("512", "present", True), (None, "absent", False)], "fail", "gate.environment.mixed"),
        ([(None, "unreadable", True)], "inconclusive", "gate.environment.unproven"),
        ([(None, "forbidden", True)], "inconclusive", "gate.environment.unproven"),
        ([], "inconclusive", "gate.environment.unproven"),
    ],
)
def test_an_environment_is_believed_when_the_processes_have_the_very_value(
    processes: list[tuple[str | None, str, bool]], answer: str, code: str
) -> None:
    read = [b.process(v, answer=a, pid=n, main=main) for n, (v, a, main) in enumerate(processes, start=1)]
    proof = prove(instance="decode@gpu1", variable=b.ENV, wanted="512", processes=read, effective="512")
    verdict = environment.judge(proof)
    holds(verdict, {"answer": answer, "code": code})
    assert verdict.findings[1:] == proof.findings


def test_every_gate_of_a_plan_has_a_file_and_its_cases() -> None:
    files = {path.stem for path in (ROOT / "policies" / "gates").glob("[a-z]*.py")}
    assert files == set(get_args(GateKind)) == set(CASES) | {"environment"}


@GIVEN
@given(st.one_of(st.text(), JSON.map(json.dumps)))
@example("[" * 60_000)
@example('{"a":' * 20_000)
@example('{"choices": [{"text": "\\ud800"}]}')
@example('{"a": "\\ud800"}')
@example("1" * 5_000)
@example('{"a": NaN}')
def test_no_body_breaks_a_gate_or_what_is_recorded_of_it(text: str) -> None:
    for verdict in (
        canary.judge("router", b.answer(200, text), "n0nce-that-nobody-knows"),
        reported.judge("decode@gpu1", b.answer(200, text), "a", "value-that-nobody-has"),
    ):
        assert verdict.answer in {"fail", "inconclusive"}
        assert Verdict.model_validate_json(verdict.model_dump_json()) == verdict


@GIVEN
@given(JSON, st.text(alphabet="abc0", min_size=1))
def test_every_nonce_of_a_body_is_filled_and_nothing_else(given_body: Any, nonce: str) -> None:
    document: JsonValue = {"prompt": "say {nonce}", "rest": [given_body, {"messages": [{"content": "{nonce}{nonce}"}]}]}
    filled = canary.filled(document, nonce)
    assert isinstance(filled, dict)
    assert filled["prompt"] == f"say {nonce}"
    assert isinstance(filled["rest"], list)
    assert filled["rest"][1] == {"messages": [{"content": nonce * 2}]}
    assert json.dumps(canary.filled(given_body, "{nonce}")) == json.dumps(given_body)


def test_keys_numbers_and_truth_values_of_a_canary_stay() -> None:
    document: JsonValue = {"{nonce}": 1, "max_tokens": 4, "stream": False, "stop": None, "temperature": 0.0}
    assert canary.filled(document, "n") == document


def test_a_long_text_is_told_by_its_beginning() -> None:
    verdict = canary.judge("router", b.answer(200, json.dumps({"choices": [{"text": "x" * 500}]})), "4")
    assert verdict.findings[0].values["text"] == "x" * 80


def test_a_verdict_without_data_is_never_pass() -> None:
    values: gates.Values = {"instance": "decode@gpu1"}
    made = (gates.passed("a.b", values), gates.failed("a.b", values), gates.undecided("a.b", values))
    assert [v.answer for v in made] == ["pass", "fail", "inconclusive"]
