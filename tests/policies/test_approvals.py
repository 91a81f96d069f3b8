"""Who may say what about a change, and when: the whole matrix, plans and quorums as data."""

from __future__ import annotations

from typing import Any

import pytest

from policies import events as e
from policies.approvals import judge, still_valid
from policies.change import TABLE, Change, apply
from policies.intents import Act, Actor
from tests.policies import builders as b
from tests.policies.change_events import every, standing

FLEET = b.fleet()
PLANS = {plan.order: plan for plan in b.plans()}
BOTH = ("engineers", "approvers")
# the columns of who_what_when.json: who clicks, and who asked
COLUMNS: tuple[tuple[str, Actor, Actor], ...] = (
    ("the requester", b.ANA, b.ANA),
    ("an approver", b.CAT, b.ANA),
    ("the requester who is an approver", b.BEN, b.BEN),
    ("an engineer", Actor(id="U0DAN", roles=("engineers",)), b.ANA),
    ("nobody", Actor(id="U0EVE"), b.ANA),
)
PEOPLE = {
    "ana": b.ANA,
    "ben": b.BEN,
    "cat": b.CAT,
    "dan": Actor(id="U0DAN", roles=BOTH),
    "gone": Actor(id="U0GONE", roles=("approvers",)),
    "named ben": Actor(id="U0GONE", name="ben", roles=("approvers",)),
}
EVENT_OF = {
    "confirm": "approval_given", "deny": "denied", "keep": "keep_chosen", "undo": "undo_asked", "retry": "retry_asked",
    "ratify": "ratified",
}  # fmt: skip
MATRIX = [
    pytest.param(row, act, column, id=f"{row['about']}: {act} by {COLUMNS[column][0]}")
    for row in b.golden("clicks/who_what_when.json")
    for act in row["acts"]
    for column in range(len(COLUMNS))
]


@pytest.mark.parametrize(("row", "act", "column"), MATRIX)
def test_each_act_of_each_person_in_each_state_has_its_answer(row: dict[str, Any], act: str, column: int) -> None:
    _, who, asker = COLUMNS[column]
    change = standing(row["state"], asker=asker, **row.get("planned", {}))
    said = judge(change, Act.model_validate({"kind": act, "change": "C-1"}), who, FLEET, b.NOW + row.get("after_s", 60))
    wanted = row["acts"][act]
    assert said.code == "click." + (wanted if isinstance(wanted, str) else wanted[column])
    assert said.effect == ("allow" if said.code == "click.ok" else "refuse")
    assert (said.values["change"], said.values["actor"]) == ("C-1", who.id)


@pytest.mark.parametrize(("row", "act", "column"), MATRIX)
def test_what_is_allowed_can_be_recorded_in_that_state(row: dict[str, Any], act: str, column: int) -> None:
    wanted = row["acts"][act]
    allowed = (wanted if isinstance(wanted, str) else wanted[column]) == "ok"
    state = standing(row["state"]).state
    kind = EVENT_OF.get(act, "aborted" if state == "planned" else "abort_asked")
    if allowed:
        assert (state, kind) in TABLE
    else:
        assert (state, "click_refused") in TABLE


@pytest.mark.parametrize("case", b.golden("clicks/plans.json"), ids=b.ids(b.golden("clicks/plans.json")))
def test_a_click_is_about_the_plan_that_was_seen(case: dict[str, Any]) -> None:
    click = dict(case["click"])
    if "digest" in click:
        plan = PLANS.get(click["digest"])
        click["digest"] = plan.digest if plan else click["digest"]
    act = Act.model_validate({"kind": "confirm", "change": "C-1", **click})
    assert judge(standing("planned"), act, b.CAT, FLEET, b.NOW).code == case["code"]


@pytest.mark.parametrize("case", b.golden("clicks/quorum.json"), ids=b.ids(b.golden("clicks/quorum.json")))
def test_a_quorum_is_made_of_different_people_who_mean_the_same_plan(case: dict[str, Any]) -> None:
    change = standing("planned", approvals=case["approvals"])
    for name, order, code in case["clicks"]:
        act = Act(kind="confirm", change="C-1", order=order)
        said = judge(change, act, PEOPLE[name], FLEET, b.NOW)
        assert said.code == code
        change = _recorded(change, act, PEOPLE[name], said.code)
    assert (change.state == "approved") is any(code == "click.ok" for _, _, code in case["clicks"])


def _recorded(change: Change, act: Act, actor: Actor, code: str) -> Change:
    if code not in {"click.ok", "click.more-needed"}:
        return change
    plan = PLANS[act.order or "co-restart"]
    given = e.ApprovalGiven(actor=actor, order=plan.order, digest=plan.digest, complete=code == "click.ok")
    return apply(change, given, b.NOW)


def test_below_the_quorum_the_answer_says_how_many_are_missing() -> None:
    change = standing("planned", approvals=3)
    said = judge(change, Act(kind="confirm", change="C-1"), b.CAT, FLEET, b.NOW)
    assert (said.effect, said.values["missing"]) == ("allow", 2)


def test_a_late_click_is_told_who_decided() -> None:
    said = judge(standing("running"), Act(kind="confirm", change="C-1"), b.CAT, FLEET, b.NOW)
    assert (said.values["state"], said.values["decided_by"]) == ("running", b.BEN.id)
    early = judge(standing("denied"), Act(kind="confirm", change="C-1"), b.CAT, FLEET, b.NOW)
    assert early.values["decided_by"] is None


@pytest.mark.parametrize("case", b.golden("clicks/still_valid.json"), ids=b.ids(b.golden("clicks/still_valid.json")))
def test_approvals_are_looked_at_again_when_the_work_starts(case: dict[str, Any]) -> None:
    change = standing("planned", **case.get("planned", {}))
    for name in case["given"]:
        last = name == case["given"][-1]
        plan = PLANS["co-restart"]
        given = e.ApprovalGiven(actor=PEOPLE[name], order=plan.order, digest=plan.digest, complete=last)
        change = apply(change, given, b.NOW)
    fleet = b.fleet(roles=case["roles"]) if "roles" in case else FLEET
    said = still_valid(change, fleet, b.NOW + case.get("after_s", 60))
    assert (said.code if said else None) == case["code"]


def test_nothing_is_looked_at_again_before_there_is_a_plan() -> None:
    assert still_valid(standing("asked"), FLEET, b.NOW) is None


def test_a_typed_confirm_is_not_taken_for_a_plan_that_was_just_made_anew() -> None:
    events = every(tuple(PLANS.values()))
    change = Change("C-1")
    for number, kind in enumerate(("asked", "planned", "approval_given", "replan", "planned")):
        change = apply(change, events[kind], b.NOW + number)
    typed = Act(kind="confirm", change="C-1")
    early = judge(change, typed, b.CAT, FLEET, change.planned_at + 29.0)
    assert (early.effect, early.code) == ("refuse", "click.planned-again")
    assert judge(change, typed, b.CAT, FLEET, change.planned_at + 31.0).code == "click.ok"
    order = change.planned.plans[0] if change.planned else None
    assert order is not None
    seen = Act(kind="confirm", change="C-1", order=order.order, digest=order.digest)
    assert judge(change, seen, b.CAT, FLEET, change.planned_at + 1.0).code == "click.ok"
