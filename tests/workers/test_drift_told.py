"""Drift is recorded when it is new, when it changed and when it is over; never twice, never while a change works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from policies import events as e
from policies.finding import Finding
from tests.conftest import Store
from tests.policies import builders as b
from workers.drift import FleetLook, InstanceLook
from workers.drift_told import drift_round
from workers.shells import Shell
from workers.wiring import Wiring

PLAN = b.plans()[1]
BY_HAND = Finding(code="drift.live", effect="refuse", values={"knob": "X", "live": "64", "instance": "decode@gpu1"})
OTHER = BY_HAND.model_copy(update={"values": {**BY_HAND.values, "live": "65"}})
NOTE = Finding(code="drift.other-process", effect="note", values={"instance": "decode@gpu1"})


def no_shell() -> Shell:
    raise AssertionError("no host is asked")


class Room:
    """Looks that find what the test says, of decode and of prefill."""

    def __init__(self, store: Store) -> None:
        self.now = b.NOW
        self.store = store
        self.wiring = self.worker()
        self.meanwhile: Callable[[], None] = lambda: None

    def worker(self) -> Wiring:
        return Wiring(b.fleet(), self.store.redis, no_shell, clock=lambda: self.now)

    def look(self, *found: Finding, wiring: Wiring | None = None) -> list[str]:
        one = InstanceLook("decode@gpu1", "active", None, b.life(), None, {}, None, found)
        other = replace(one, instance="prefill@gpu1", findings=())

        def looked(_: Wiring) -> FleetLook:
            self.meanwhile()
            return FleetLook((one, other), {})

        self.now += 300.0
        return drift_round(wiring or self.wiring, looked)

    def said(self) -> list[tuple[Finding, ...]]:
        events = [entry.event for entry in self.wiring.ledger.index("drift")]
        return [event.found for event in events if isinstance(event, e.DriftSeen)]

    def change(self, *more: e.Event) -> None:
        given = e.ApprovalGiven(actor=b.BEN, order=PLAN.order, digest=PLAN.digest, complete=True)
        started = e.Started(worker="w1", tokens={"decode@gpu1": 1})
        for event in (b.asked(), b.planned(b.plans()), given, started, *more):
            self.record(event)

    def record(self, event: e.Event) -> None:
        self.wiring.ledger.append("C-1", event, expect_version=len(self.wiring.ledger.entries("C-1")))


@pytest.fixture
def room(store: Store) -> Room:
    return Room(store)


def test_drift_is_recorded_once_whoever_looks_and_however_often(room: Room) -> None:
    assert room.look(NOTE) == []
    assert room.look(BY_HAND, NOTE) == ["dr-1"]
    for _ in range(3):
        assert room.look(NOTE, BY_HAND, wiring=room.worker()) == []
    assert room.said() == [(BY_HAND,)]


def test_it_is_said_again_when_it_changed_when_it_is_over_and_when_it_came_back(room: Room) -> None:
    for found in ((BY_HAND,), (BY_HAND, OTHER), (OTHER, BY_HAND), (OTHER,), (), (), (OTHER,)):
        room.look(*found)
    assert room.said() == [(BY_HAND,), (BY_HAND, OTHER), (OTHER,), (), (OTHER,)]
    assert {entry.subject for entry in room.wiring.ledger.index("drift")} == {"dr-1"}


def test_of_an_instance_on_which_a_change_is_at_work_nothing_is_said_until_it_has_ended(room: Room) -> None:
    room.change()
    assert room.look(BY_HAND) == []
    room.record(e.Held(findings=(NOTE,)))
    assert room.look(BY_HAND) == []
    room.record(e.KeepChosen(actor=b.BEN))
    room.now += 300.0
    assert room.look(BY_HAND) == ["dr-1"]


def test_a_change_that_begins_or_ends_during_the_look_is_met(room: Room) -> None:
    room.meanwhile = room.change
    assert room.look(BY_HAND) == []
    room.meanwhile = lambda: room.record(
        e.Succeeded(knob="TARGET_CTAS", order="decode-only", was={}, now={}, took_s=1.0)
    )
    assert room.look(BY_HAND) == []
    room.meanwhile = lambda: None
    assert room.look(BY_HAND) == ["dr-1"]


def test_two_workers_that_look_in_one_moment_record_it_once(room: Room) -> None:
    again: list[list[str]] = []

    def other() -> None:
        room.meanwhile = lambda: None
        again.append(room.look(BY_HAND, wiring=room.worker()))

    room.meanwhile = other
    assert room.look(BY_HAND) == []
    assert again == [["dr-1"]]
    assert len(room.said()) == 1
