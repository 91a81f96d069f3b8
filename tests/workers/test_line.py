"""How a change that waits is recorded, told, and how it ends without its turn."""

from __future__ import annotations

import pytest

from bot.cards.answers import status_all
from bot.cards.progress import card
from bot.cards.story import Story
from bot.thread import line as thread_line
from policies import events as e
from policies.change import Change
from policies.finding import Finding
from policies.plan import Estimate, Plan
from tests.conftest import Store
from tests.policies import builders as b
from workers.execute import execute
from workers.line import ahead_of, line
from workers.shells import Shell
from workers.wiring import Wiring

PLANS = b.plans()


def timed(plan: Plan) -> Plan:
    medians = tuple((instance, 68.0) for instance in plan.services)
    return plan.model_copy(update={"estimate": Estimate(median_s=68.0, p90_s=68.0, n=7, medians=medians)})


class Room:
    """Changes on decode in an empty ledger; nothing reaches a host."""

    def __init__(self, store: Store) -> None:
        self.now = b.NOW
        self.wiring = Wiring(b.fleet(timing={"bake_s": 60.0}), store.redis, no_shell, clock=lambda: self.now)

    def approved(self, name: str, *more: e.Event) -> Change:
        plans = tuple(timed(plan) for plan in PLANS)
        plan = next(plan for plan in plans if plan.order == "decode-only")
        given = e.ApprovalGiven(actor=b.BEN, order=plan.order, digest=plan.digest, complete=True)
        for number, event in enumerate((b.asked(), b.planned(plans), given, *more)):
            self.wiring.ledger.append(name, event, expect_version=number)
            self.now += 1
        return self.change(name)

    def change(self, name: str) -> Change:
        return self.wiring.ledger.load(name)

    def story(self, name: str) -> Story:
        return Story.of(self.wiring.ledger.entries(name))


def no_shell() -> Shell:
    raise AssertionError("no host is asked")


@pytest.fixture
def room(store: Store) -> Room:
    room = Room(store)
    room.approved("C-141", e.Started(worker="w1", tokens={"decode@gpu1": 1}))
    return room


def test_a_place_is_recorded_once_and_told_in_thread_card_and_status(room: Room) -> None:
    room.approved("C-142")
    for _ in range(3):
        line(room.wiring, "C-142")
        execute(room.wiring, "C-142")
    kinds = [entry.event.kind for entry in room.wiring.ledger.entries("C-142")]
    assert kinds == ["asked", "planned", "approval_given", "queued"]
    told = "queued behind C-141 on decode@gpu1, position 2, about 2 min (n=7 boots)"
    assert str(thread_line(room.story("C-142"))).endswith(told)
    assert told in card(room.story("C-142")).text
    assert f"C-142 {told}" in status_all([room.change("C-142")], room.wiring.client.line()).text


def test_whoever_waits_and_is_aborted_ends_at_once_and_nothing_was_begun(room: Room) -> None:
    room.approved("C-142", e.AbortAsked(actor=b.ANA))
    line(room.wiring, "C-142")
    after = room.change("C-142")
    assert isinstance(after.last, e.Aborted)
    assert [f.code for f in after.last.findings] == ["aborted.before-start"]


def test_an_approval_that_is_over_before_the_turn_is_refused_and_those_behind_move_up(room: Room) -> None:
    room.approved("C-142")
    room.now += 900.0
    room.approved("C-143")
    line(room.wiring, "C-143")
    assert room.change("C-143").queued == e.Queued(
        position=3, behind=("C-141", "C-142"), on=("decode@gpu1",), left_s=256.0, n=7
    )
    planned = room.change("C-142").planned
    assert planned is not None
    room.now = planned.expires_at
    line(room.wiring, "C-142")
    ended = room.change("C-142")
    assert isinstance(ended.last, e.Refused)
    assert [f.code for f in ended.last.findings] == ["approval.expired"]


def test_a_change_in_front_that_becomes_held_is_told_with_the_person_that_it_waits_for(room: Room) -> None:
    room.approved("C-142")
    line(room.wiring, "C-142")
    version = room.change("C-141").version
    held = e.Held(findings=(Finding(code="x.y", effect="refuse"),))
    room.wiring.ledger.append("C-141", held, expect_version=version)
    line(room.wiring, "C-142")
    said = str(thread_line(room.story("C-142")))
    assert "position 2; C-141 is held and waits for a person" in said
    assert "about" not in said


def test_a_plan_says_whom_it_would_wait_for(room: Room) -> None:
    (noted,) = ahead_of(room.wiring, (timed(PLANS[1]),), "C-150")
    assert noted.digest == PLANS[1].digest
    code, values = noted.warnings[0].code, noted.warnings[0].values
    assert (code, values["behind"], values["on"], values["position"]) == (
        "queue.would-wait-s",
        "C-141",
        "decode@gpu1",
        2,
    )
    assert (values["left_s"], values["n"]) == (128.0, 7)
