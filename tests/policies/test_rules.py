"""The rule families that look at the world: evidence and freezes, as data."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.messages import strict
from policies.applicability import standing
from policies.finding import Finding
from policies.fleet import EvidenceNeed, Freeze
from policies.rules import evidence, freeze
from tests.policies import builders as b
from tests.policies.test_decision import WORDS, case_of

EVIDENCE = b.golden("decisions/evidence.json")
FREEZES = b.golden("decisions/freeze.json")
SWITCHES = b.golden("decisions/freeze_switches.json")
WEEKEND: dict[str, Any] = {"name": "weekend", "cron": "0 18 * * FRI", "for_s": 62 * 3600.0, "tz": "Europe/Berlin"}


def at(text: str) -> float:
    """Epoch seconds of an ISO time with its offset."""
    return datetime.fromisoformat(text).timestamp()


def frozen_case(now: float, word: str) -> Any:
    """A case in a fleet with the weekend freeze."""
    return case_of(b.fleet(freezes=(WEEKEND,)), now=now, intent=word, value=None if word == "unset" else "512")


@pytest.mark.parametrize("case", EVIDENCE, ids=b.ids(EVIDENCE))
def test_evidence_is_enough_or_the_reason_is_told(case: dict[str, Any]) -> None:
    rule = {**b.RULE, "evidence": {"metric": "output_throughput", **case["need"]}}
    records = [b.judged(klass, at=b.NOW - 60, **correctness(case)) for klass in case.get("judged", ())]
    for told in case.get("records", ()):
        fields = dict(told)
        records.append(b.record(at=b.NOW - fields.pop("age_s", 60), **fields))
    asked = {key: case[key] for key in ("intent", "value", "roles") if key in case}
    plain = case_of(b.fleet(rules=(rule,)), records, **asked)
    stand = {
        r.id: standing(
            r, b.today(**case.get("today", {})), b.NOW, max_age_s=case["need"].get("max_age_s"), variable=b.ENV
        )
        for r in records
    }
    findings = evidence.judge(replace(plain, standings=stand, reason=case.get("reason")))
    codes = case["code"] if isinstance(case["code"], list) else [case["code"]] if case["code"] else []
    assert [f.code for f in findings] == codes
    assert all(strict(finding) for finding in findings)
    if codes:
        effect = case.get("effect", "allow" if codes == ["evidence.enough"] else "refuse")
        assert (findings[0].effect, findings[0].values["line"]) == (effect, 40)
    for key in ("record", "standing", "why"):
        if key in case:
            assert findings[0].values[key] == case[key]


def correctness(case: dict[str, Any]) -> dict[str, Any]:
    """Of a judged record, where the case tells another one."""
    return {"correctness": case["correctness"]} if "correctness" in case else {}


def test_each_rule_that_needs_evidence_is_judged() -> None:
    loose = {**b.RULE, "evidence": {"metric": "output_throughput", "at_least": "observed"}}
    strict = {**b.RULE, "line": 41, "evidence": {"metric": "output_throughput", "at_least": "no_worse"}}
    findings = evidence.judge(case_of(b.fleet(rules=(loose, strict)), [b.record()]))
    assert [(f.code, f.values["line"]) for f in findings] == [("evidence.enough", 40), ("evidence.too-weak", 41)]


def test_records_of_this_value_come_newest_first() -> None:
    records = [b.record(id="old", at=1.0), b.record(id="new", at=2.0), b.record(id="other", value="256")]
    need = EvidenceNeed(metric="output_throughput", at_least="observed")
    assert [r.id for r in evidence.fitting(case_of(b.fleet(), records), "TARGET_CTAS", need)] == ["new", "old"]


@pytest.mark.parametrize("case", FREEZES, ids=b.ids(FREEZES))
def test_a_freeze_holds_from_its_first_second_to_its_last(case: dict[str, Any]) -> None:
    one = Freeze.model_validate({**WEEKEND, **{k: case[k] for k in ("cron", "for_s", "tz") if k in case}})
    until = freeze.frozen_until(one, at(case["at"]))
    assert until == (None if case["until"] is None else at(case["until"]))


@pytest.mark.parametrize("case", SWITCHES, ids=b.ids(SWITCHES))
def test_a_freeze_at_a_clock_change_begins_once_and_lasts_its_time_to_the_second(case: dict[str, Any]) -> None:
    """Each case names a start and an end as instants; what lies before, between and behind them is checked here."""
    one = Freeze(name="x", cron=case["cron"], for_s=case["hours"] * 3600.0, tz=case["tz"])
    start, end = at(case["start"]), at(case["end"])
    assert end - start == one.for_s, "the case itself"
    assert freeze.frozen_until(one, start - 1) is None
    inside = [start, start + 0.5, *(start + one.for_s * i / 24 for i in range(24)), end - 1, end - 0.001]
    assert {freeze.frozen_until(one, moment) for moment in inside} == {end}
    assert freeze.frozen_until(one, end) is None
    for quiet in case.get("quiet", ()):
        assert freeze.frozen_until(one, at(quiet)) is None


ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC", "Asia/Kolkata", "Africa/Casablanca")


@settings(max_examples=60)
@given(
    st.sampled_from(ZONES),
    st.sampled_from(["30 2 * * *", "0 * * * *", "*/20 1-3 * * *", "0 18 * * FRI", "45 1 * * SUN", "0 0 1 1,4,10 *"]),
    st.integers(60, 400_000),
    st.integers(1_767_225_600, 1_830_297_600),
)
def test_a_freeze_that_holds_holds_to_its_end_unless_the_next_one_begins(tz: str, cron: str, s: int, now: int) -> None:
    one = Freeze(name="x", cron=cron, for_s=float(s), tz=tz)
    until = freeze.frozen_until(one, now)
    if until is None:
        return
    begun = until - s
    assert begun <= now < until
    assert freeze.frozen_until(one, begun) == until
    last = freeze.frozen_until(one, until - 1)
    assert last is not None
    assert last >= until
    behind = freeze.frozen_until(one, until)
    assert behind is None or behind > until


def test_a_refusal_of_before_zones_were_told_reads_as_it_did() -> None:
    values: dict[str, str | int | float | None] = {"freeze": "weekend", "until": 1796626800.0}
    old = Finding(code="freeze.in-force", effect="refuse", values=values)
    assert strict(old).endswith("UTC>; nothing is changed before, except back")


@pytest.mark.parametrize("word", WORDS)
def test_in_a_freeze_only_taking_back_is_allowed(word: str) -> None:
    sunday = at("2026-12-06T12:00:00+01:00")
    (finding,) = freeze.judge(frozen_case(sunday, word))
    expected = (
        ("freeze.taking-back-is-allowed", "note") if word in {"revert", "unset"} else ("freeze.in-force", "refuse")
    )
    assert (finding.code, finding.effect) == expected
    assert finding.values == {
        "freeze": "weekend",
        "until": at("2026-12-07T08:00:00+01:00"),
        "there": " (2026-12-07 08:00+01:00 Europe/Berlin)",
    }
    assert "(2026-12-07 08:00+01:00 Europe/Berlin); " in strict(finding)


@pytest.mark.parametrize("word", WORDS)
def test_outside_of_a_freeze_nothing_is_said_about_it(word: str) -> None:
    assert freeze.judge(frozen_case(at("2026-12-02T12:00:00+01:00"), word)) == ()


def test_each_freeze_in_force_is_named() -> None:
    night = {"name": "night", "cron": "0 22 * * *", "for_s": 8 * 3600.0, "tz": "Europe/Berlin"}
    case = case_of(b.fleet(freezes=(WEEKEND, night)), now=at("2026-12-05T23:00:00+01:00"))
    assert [f.values["freeze"] for f in freeze.judge(case)] == ["weekend", "night"]
