"""An emergency: what it opens and what it does not, who may confirm and ratify, and what takes back what nobody did."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bot.messages import strict
from policies import events as e
from policies.approvals import judge, still_valid
from policies.case import Case
from policies.change import Change, apply
from policies.decision import decide, decided
from policies.emergency import OURS, lapses, overridden, ratification, remind_at, way_back
from policies.finding import Finding
from policies.fleet import Emergency, Fleet, Role
from policies.intents import Act, Actor, Deploy, Rollback, SetKnob, UnsetKnob
from tests.policies import builders as b
from tests.policies.change_events import every
from tests.policies.test_decision import case_of

WITHIN_S = 7200.0
FREEZE = {"name": "always", "cron": "0 0 * * *", "for_s": 90000.0}
EMERGENCY = Emergency(by="oncall", ratify_by="approvers", within_s=WITHIN_S)
OTTO = Actor(id="U0OTTO", roles=("engineers", "oncall"))
PLANS = b.plans()
ORDER = PLANS[0].order
# the columns of emergency.json: who clicks, and who asked
COLUMNS: tuple[tuple[str, Actor, Actor], ...] = (
    ("the requester on call", OTTO, OTTO),
    ("the requester who is not on call any more", Actor(id="U0OTTO", roles=("engineers",)), OTTO),
    ("the requester who is an approver", Actor(id="U0OTTO", roles=("oncall", "approvers")), OTTO),
    ("an approver", b.CAT, OTTO),
    ("another one on call", Actor(id="U0PIA", roles=("engineers", "oncall")), OTTO),
    ("an engineer", Actor(id="U0DAN", roles=("engineers",)), OTTO),
    ("nobody", Actor(id="U0EVE"), OTTO),
)
ROWS = b.golden("clicks/emergency.json")
MATRIX = [
    pytest.param(row, act, column, id=f"{row['about']}: {act} by {COLUMNS[column][0]}")
    for row in ROWS
    for act in ("confirm", "typed", "deny", "ratify")
    if act in row
    for column in range(len(COLUMNS))
]


def fleet(*, freezes: tuple[Any, ...] = (FREEZE,), **more: Any) -> Fleet:
    return b.fleet(freezes=freezes).model_copy(update={"emergency": EMERGENCY.model_copy(update=more)})


def urgent(of: Fleet, actor: Actor = OTTO, **more: Any) -> Case:
    return replace(case_of(of, **more), actor=actor, emergency=True, reason="5xx since noon")


def codes(found: tuple[Finding, ...], effect: str) -> list[str]:
    return [one.code for one in found if one.effect == effect]


def override(**more: Any) -> e.Override:
    given = {"by": "oncall", "ratify_by": "approvers", "within_s": WITHIN_S, "because": "5xx", "freezes": ("always",)}
    return e.Override.model_validate({**given, "approvals": 1, "role": "approvers", **more})


def stood(when: str, asker: Actor = OTTO, approvals: int = 1, **more: Any) -> Change:
    """A change of an emergency that stands there; confirmed at NOW."""
    by = "approvers" if approvals else None
    planned = b.planned(PLANS, approvals=approvals, by=by, emergency=override(approvals=approvals, role=by, **more))
    change = apply(Change("C-1"), b.asked(asker, emergency=True, because="5xx"), b.NOW - 2)
    change = apply(change, planned, b.NOW - 1)
    if when == "planned":
        return change
    who = b.CAT if when == "together" else asker
    found = overridden(change, who)
    given = e.ApprovalGiven(actor=who, order=ORDER, digest=PLANS[0].digest, complete=True, override=found)
    change = apply(change, given, b.NOW)
    kept = e.KeepChosen(actor=b.CAT)
    ways: dict[str, tuple[str | e.Event, ...]] = {
        "approved": (),
        "running": ("started",),
        "held": ("started", "held"),
        "succeeded": ("started", "succeeded"),
        "together": ("started", "succeeded"),
        "ratified": ("started", "succeeded", "ratified"),
        "lapsed": ("started", "succeeded", "lapsed"),
        "kept": ("started", "held", kept),
        "rolled_back": ("started", "undo_started", "rolled_back"),
        "aborted": ("started", "undo_started", "aborted"),
    }
    events = every(PLANS)
    for event in ways[when]:
        change = apply(change, events[event] if isinstance(event, str) else event, b.NOW + 1)
    return change


@pytest.mark.parametrize(("row", "act", "column"), MATRIX)
def test_each_word_of_each_person_has_its_answer(row: dict[str, Any], act: str, column: int) -> None:
    _, who, asker = COLUMNS[column]
    more = {key: row[key] for key in ("approvals", "freezes") if key in row}
    change = stood(row["when"], asker, **more)
    kind = "confirm" if act == "typed" else act
    seen = {"order": ORDER, "digest": PLANS[0].digest} if act == "confirm" else {}
    word = Act.model_validate({"kind": kind, "change": "C-1", **seen})
    said = judge(change, word, who, fleet(), b.NOW + row.get("after_s", 60))
    wanted = row[act]
    assert said.code == "click." + (wanted if isinstance(wanted, str) else wanted[column])
    assert said.effect == ("allow" if said.code in {"click.ok", "click.more-needed"} else "refuse")
    assert strict(said)


def test_an_emergency_opens_a_freeze_and_a_missing_approval_and_tells_both() -> None:
    found = decide(urgent(fleet()))
    assert (found.outcome, found.approvals, found.by) == ("needs", 1, "approvers")
    assert codes(found.findings, "warn") == ["freeze.overridden", "emergency.may"]
    opened = found.emergency
    assert opened is not None
    assert (opened.freezes, opened.approvals, opened.role, opened.because) == (
        ("always",),
        1,
        "approvers",
        "5xx since noon",
    )
    assert "within 2 h 00 min of that, or clawback takes it back" in strict(found.findings[-1])


@pytest.mark.parametrize(
    ("case", "code"),
    [
        (urgent(b.fleet(freezes=(FREEZE,))), "emergency.not-declared"),
        (urgent(fleet(), b.ANA), "emergency.not-yours"),
        (urgent(fleet(), Actor(id="U0OTTO", roles=("oncall",))), "rule.may-not-ask"),
        (urgent(fleet(), value="9999"), "value.range"),
        (urgent(fleet().model_copy(update={"rules": ()})), "rule.no-rule-says-approvals"),
    ],
    ids=["not declared", "not on call", "may not ask at all", "no value of the knob", "no rule"],
)
def test_an_emergency_opens_nothing_else(case: Case, code: str) -> None:
    found = decide(case)
    assert (found.outcome, found.emergency if code.startswith("emergency.") else None) == ("refused", None)
    assert code in codes(found.findings, "refuse")
    assert all(strict(one) for one in found.findings)


def test_evidence_is_done_without_only_where_the_file_says_so() -> None:
    need = {**b.RULE, "evidence": {"metric": "output_throughput", "at_least": "observed"}}
    strictly = fleet().model_copy(update={"rules": b.fleet(rules=(need,)).rules})
    assert "evidence.none" in codes(decide(urgent(strictly)).findings, "refuse")
    skipping = strictly.model_copy(update={"emergency": EMERGENCY.model_copy(update={"evidence": "skipped"})})
    found = decide(urgent(skipping))
    assert (found.outcome, found.emergency and found.emergency.evidence) == ("needs", ("evidence.none",))
    assert "evidence.skipped" in codes(found.findings, "warn")
    assert "evidence.none" in codes(decide(replace(urgent(skipping), emergency=False)).findings, "refuse")


def test_the_lock_of_a_rollback_waits_for_an_approver_and_is_opened_too() -> None:
    lock: dict[str, str | int | float | None] = {
        "lock": "rl-7", "scope": "decode", "taken": "2", "at": b.NOW, "change": "C-7", "owner": "U0ANA",
        "brought": None, "because": None,
    }  # fmt: skip
    left = Finding(code="lock.after-rollback", effect="refuse", values=lock)
    case = replace(urgent(fleet(freezes=())), locks=(left,))
    found = decide(case)
    assert (found.outcome, found.emergency and found.emergency.locks) == ("needs", ("rl-7",))
    assert all(strict(one) for one in found.findings)
    assert decide(replace(case, emergency=False)).outcome == "refused"


def test_what_nothing_stands_in_the_way_of_is_no_emergency() -> None:
    free = b.fleet(rules=({**b.RULE, "approvals": 0, "by": None},)).model_copy(update={"emergency": EMERGENCY})
    found = decide(urgent(free))
    assert (found.outcome, found.emergency) == ("allowed", None)
    assert codes(found.findings, "note") == ["emergency.not-needed"]


def test_a_freeze_tells_of_the_way_for_an_emergency_and_only_where_there_is_one() -> None:
    told = decide(replace(urgent(fleet()), emergency=False)).findings
    assert codes(told, "note") == ["emergency.could"]
    assert 'says the same with `emergency because "..."`' in strict(told[-1])
    assert "emergency.could" not in codes(decide(case_of(b.fleet(freezes=(FREEZE,)))).findings, "note")
    assert "emergency.could" not in codes(decide(case_of(fleet(freezes=()))).findings, "note")


def test_what_takes_back_needs_nobody_and_passes_the_freeze() -> None:
    asked = b.asked(OURS).model_copy(update={"undoes": "C-1"})
    found = decided(case_of(fleet()), asked)
    assert (found.outcome, found.approvals, found.by) == ("allowed", 0, "approvers")
    assert [one.code for one in found.findings] == ["emergency.goes-back"]


def test_the_requesters_role_is_looked_at_again_when_the_work_starts() -> None:
    change = stood("approved")

    def listed(user: str) -> Fleet:
        return b.fleet().model_copy(update={"roles": {"oncall": Role(name="oncall", users=(user,))}})

    assert still_valid(change, listed("U0OTTO"), b.NOW + 1) is None
    gone = still_valid(change, listed("U0PIA"), b.NOW + 1)
    assert gone is not None
    assert (gone.code, gone.values["by"]) == ("approval.role-lost", "oncall")


def test_a_reminder_comes_once_a_quarter_of_an_hour_before_the_end_or_at_half_time() -> None:
    change = stood("succeeded")
    assert remind_at(change) == b.NOW + WITHIN_S - 900
    assert remind_at(stood("succeeded", within_s=600.0)) == b.NOW + 300
    assert remind_at(apply(change, e.RatifyReminded(), b.NOW)) is None
    assert [remind_at(stood(when)) for when in ("planned", "ratified", "lapsed", "rolled_back", "together")] == [
        None
    ] * 5


def test_it_lapses_when_the_time_is_over_and_what_is_at_work_is_waited_for() -> None:
    end = b.NOW + WITHIN_S
    assert [lapses(stood("succeeded"), at) for at in (end - 0.1, end)] == [False, True]
    assert [lapses(stood(when), end) for when in ("held", "running", "approved")] == [True, False, False]
    assert [lapses(stood(when), end) for when in ("ratified", "together", "kept", "rolled_back")] == [False] * 4


def test_a_word_after_the_end_moves_nothing_of_the_end() -> None:
    change = stood("succeeded")
    after = apply(change, e.Ratified(actor=b.CAT), b.NOW + 99)
    assert (after.state, after.ended_at, after.last, after.version) == (
        "succeeded",
        change.ended_at,
        change.last,
        change.version + 1,
    )
    assert ratification(after).by == b.CAT


def test_planned_again_it_has_to_be_confirmed_again() -> None:
    change = apply(stood("running"), every(PLANS)["replan"], b.NOW + 5)
    assert (change.override, ratification(change).word) == (None, "none")


@pytest.mark.parametrize(
    ("before", "then"),
    [
        ((None, None), UnsetKnob(knob="TARGET_CTAS", order=ORDER, because="C-1 was not ratified in time")),
        (("256", "256"), SetKnob(knob="TARGET_CTAS", value="256", order=ORDER, because="C-1 was not ratified in time")),
        (("256", None), "ratify.no-one-before"),
    ],
)
def test_what_takes_a_knob_back_is_its_value_before(before: tuple[str | None, ...], then: Any) -> None:
    change = stood("succeeded")
    assert change.planned is not None
    (target,) = PLANS[0].targets
    targets = tuple(target.model_copy(update={"now": value}) for value in before)
    plans = (PLANS[0].model_copy(update={"targets": targets}), *PLANS[1:])
    change = replace(change, planned=change.planned.model_copy(update={"plans": plans}))
    found = way_back(change, "C-1")
    assert (found.code if isinstance(found, Finding) else found) == then
    since = way_back(change, "C-9")
    assert isinstance(since, Finding)
    assert (since.code, since.values["newest"]) == ("ratify.changed-since", "C-9")
    assert strict(since)


@pytest.mark.parametrize(
    ("intent", "when", "code"),
    [
        (Rollback(service="decode"), "succeeded", "ratify.rollback-stays"),
        (Deploy(service="decode", ref="2"), "held", "ratify.did-not-succeed"),
    ],
)
def test_what_cannot_be_taken_back_says_so(intent: Any, when: str, code: str) -> None:
    change = stood(when)
    assert change.asked is not None
    found = way_back(replace(change, asked=change.asked.model_copy(update={"intent": intent})), "C-1")
    assert isinstance(found, Finding)
    assert found.code == code
    assert strict(found)
