"""The decision on a case: rules as data; default no, the strictest wins, every reason is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.case import Case, IntentWord
from policies.decision import Decision, decide
from policies.evidence import Record
from policies.fleet import Fleet
from policies.intents import Actor
from tests.policies import builders as b

CASES = b.golden("decisions/rules.json")
WORDS: tuple[IntentWord, ...] = ("set", "restore", "revert", "unset")


def case_of(fleet: Fleet, records: Sequence[Record] = (), now: float = b.NOW, **given: Any) -> Case:
    """A case about TARGET_CTAS; asked by an engineer."""
    return Case(
        intent=given.get("intent", "set"),
        actor=Actor(id="U0ANA", roles=tuple(given.get("roles", ("engineers",)))),
        fleet=fleet,
        knob=fleet.knobs["TARGET_CTAS"],
        services=fleet.knobs["TARGET_CTAS"].on,
        value=given.get("value", "512"),
        evidence=tuple(records),
        now=now,
        ticket=given.get("ticket"),
    )


def rules_of(case: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """The case's own rules, or the plain one."""
    return tuple(case.get("rules", (b.RULE,)))


@pytest.mark.parametrize("case", CASES, ids=b.ids(CASES))
def test_a_case_is_decided_by_all_rules_together(case: dict[str, Any]) -> None:
    decision = decide(case_of(b.fleet(rules=rules_of(case)), **case))
    assert decision.outcome == case["outcome"]
    assert [f.code for f in decision.findings] == case["codes"]
    for key in ("approvals", "by", "expires_s"):
        if key in case:
            assert getattr(decision, key) == case[key]


def test_without_a_time_in_the_rules_the_fleets_own_holds() -> None:
    rule = {key: value for key, value in b.RULE.items() if key != "expires_s"}
    assert decide(case_of(b.fleet(rules=(rule,), timing={"approval_s": 900.0}))).expires_s == 900.0


def test_all_refusals_come_at_once() -> None:
    need = {**b.RULE, "evidence": {"metric": "output_throughput", "at_least": "observed"}}
    freeze = {"name": "now", "cron": "0 0 * * *", "for_s": 86400.0}
    decision = decide(case_of(b.fleet(rules=(need,), freezes=(freeze,)), roles=(), value="9999"))
    assert [f.code for f in decision.findings if f.effect == "refuse"] == [
        "rule.may-not-ask",
        "value.range",
        "evidence.none",
        "freeze.in-force",
    ]


def test_a_refusal_names_the_line_of_the_rule() -> None:
    refused = decide(case_of(b.fleet(), roles=())).findings[0]
    assert refused.values == {"actor": "U0ANA", "role": "engineers", "line": 40}


@pytest.mark.parametrize(("kind", "quorum"), [("restart", 2), ("deploy", 2), ("knob", 1), (None, 2)])
def test_a_restart_that_changes_nothing_is_judged_by_rules_about_restarts_and_deploys(
    kind: str | None, quorum: int
) -> None:
    all_kinds = {**b.RULE, "match": {}}
    strict = {**b.RULE, "match": {"kind": kind}, "approvals": 2}
    case = replace(case_of(b.fleet(rules=(all_kinds, strict)), intent="restart"), knob=None, value=None)
    assert decide(case).approvals == quorum


RULES = st.fixed_dictionaries(
    {
        "match": st.fixed_dictionaries(
            {},
            optional={
                "kind": st.sampled_from(["knob", "deploy", None]),
                "intent": st.sampled_from([*WORDS, "deploy", None]),
                "knob": st.sampled_from(["TARGET_CTAS", "OTHER", None]),
                "service": st.sampled_from(["decode", "prefill", None]),
            },
        ),
        "by": st.sampled_from(["approvers", "leads"]),  # a fleet file with approvals and no role does not load
    },
    optional={
        "ask": st.sampled_from(["engineers", "leads", None]),
        "approvals": st.sampled_from([0, 1, 2, None]),
        "expires_s": st.sampled_from([60.0, 600.0, None]),
        "evidence": st.sampled_from(
            [{"metric": "output_throughput", "at_least": level} for level in ("observed", "improves")]
        ),
    },
)
GIVEN = settings(max_examples=100, deadline=None)
SEVERITY = {"allowed": 0, "needs": 1, "refused": 2}


def decided(rules: Sequence[dict[str, Any]], now: float = b.NOW, **given: Any) -> Decision:
    """The decision with one record of evidence on the shelf."""
    return decide(case_of(b.fleet(rules=rules), [b.record()], now, **given))


@GIVEN
@given(st.lists(RULES, max_size=4), RULES, st.sampled_from(WORDS))
def test_a_further_rule_loosens_nothing_that_was_decided_by_rules(
    rules: list[dict[str, Any]], further: dict[str, Any], word: IntentWord
) -> None:
    value = None if word == "unset" else "512"
    before = decided(rules, intent=word, value=value)
    after = decided([*rules, further], intent=word, value=value)
    said = {f.code for f in before.findings}
    if said & {"rule.no-rule-says-who-may-ask", "rule.no-rule-says-approvals"}:
        return  # what no rule spoke of may be allowed by a rule that does
    assert SEVERITY[after.outcome] >= SEVERITY[before.outcome]
    assert after.approvals >= before.approvals
    assert after.expires_s <= before.expires_s or before.expires_s == b.fleet().timing.approval_s


@GIVEN
@given(
    st.lists(RULES, max_size=4), st.sampled_from(WORDS), st.sampled_from([(), ("engineers",), ("engineers", "leads")])
)
def test_nothing_is_allowed_unless_a_rule_says_who_may_ask_and_how_many_must_agree(
    rules: list[dict[str, Any]], word: IntentWord, roles: tuple[str, ...]
) -> None:
    fleet = b.fleet(rules=rules)
    case = case_of(fleet, [b.record()], intent=word, roles=roles, value=None if word == "unset" else "512")
    decision = decide(case)
    if decision.outcome != "refused":
        assert any(rule.ask in roles for rule in case.matching)
        assert any(rule.approvals is not None for rule in case.matching)
        assert decision.approvals == max(rule.approvals or 0 for rule in case.matching)
        assert (decision.outcome == "needs") is (decision.approvals > 0)
        assert decision.approvals == 0 or decision.by is not None


@GIVEN
@given(st.lists(RULES, max_size=4), st.sampled_from(WORDS), st.floats(0, 60))
def test_findings_are_the_same_a_minute_later_unless_a_reason_changed(
    rules: list[dict[str, Any]], word: IntentWord, later_s: float
) -> None:
    value = None if word == "unset" else "512"
    now, then = decided(rules, intent=word, value=value), decided(rules, b.NOW + later_s, intent=word, value=value)
    assert now == then


@pytest.mark.parametrize(
    ("later_s", "codes"),
    [(0, ["evidence.enough"]), (59, ["evidence.enough"]), (60, ["evidence.enough"]), (61, ["evidence.stale"])],
)
def test_only_a_change_of_class_changes_a_finding(later_s: float, codes: list[str]) -> None:
    aged = {**b.RULE, "evidence": {"metric": "output_throughput", "at_least": "observed", "max_age_s": 2 * 86400 + 60}}
    findings = decided([aged], b.NOW + later_s).findings
    assert [f.code for f in findings if f.code.startswith("evidence")] == codes
    if codes == ["evidence.enough"]:
        assert findings == decided([aged]).findings


def test_a_freeze_reads_the_same_from_its_first_second_to_its_last() -> None:
    freeze = {"name": "day", "cron": "0 0 * * *", "for_s": 86000.0}
    frozen = b.fleet(freezes=(freeze,))
    midnight = b.NOW - 36000.0
    seen = [decide(case_of(frozen, now=midnight + s)).findings for s in (0.0, 1.0, 36000.0, 85999.0)]
    assert all(findings == seen[0] for findings in seen)
    assert "freeze.in-force" not in {f.code for f in decide(case_of(frozen, now=midnight + 86000.0)).findings}
