"""The watch records what no change did, once, whatever dies; and leaves alone what a change works on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from policies import events as e
from policies.errors import HostUnreachable
from policies.facts import UnitFacts
from tests.bot import stories
from tests.conftest import Store
from tests.policies import builders as b
from workers.client import Client
from workers.hosts import Hosts, Seen
from workers.ledger import Ledger
from workers.queue import Doorbell
from workers.watch import Found, Noted, Watch
from workers.watch import Seen as SeenBefore

INSTANCES = ("prefill@gpu1", "decode@gpu1", "router@gpu1")


@dataclass
class Machines:
    """Hosts that answer from memory."""

    units: dict[str, UnitFacts] = field(default_factory=lambda: {i: b.unit(i, pid=10) for i in INSTANCES})
    away: bool = False
    looked: int = 0

    def observe(self, instances: Sequence[str], _variables: Sequence[str]) -> Seen:
        self.looked += 1
        if self.away:
            raise HostUnreachable("gpu1 cannot be reached", hint="try again")
        return Seen({i: self.units[i] for i in instances}, {})

    def set(self, instance: str, **more: Any) -> None:
        self.units[instance] = b.unit(instance, **more)


class Room:
    """A watch on a real store."""

    def __init__(self, store: Store) -> None:
        self.ledger = Ledger(store.redis, lambda: b.NOW)
        self.machines = Machines()
        self.fleet = stories.fleet()
        self.seen = SeenBefore(store.redis, self.fleet)
        self.client = Client(self.ledger, Doorbell(store.redis), self.fleet, lambda: b.NOW)
        self.watch = Watch(store.redis, self.ledger, self.fleet, lambda: cast(Hosts, self.machines))

    def found(self) -> list[e.OutsideSeen]:
        return [x.event for x in self.ledger.index("outside") if isinstance(x.event, e.OutsideSeen)]


@pytest.fixture
def room(store: Store) -> Room:
    return Room(store)


def test_the_first_look_finds_nothing_and_is_remembered(room: Room) -> None:
    assert room.watch.round() == []
    assert all(snapshot is not None for snapshot in room.seen.all().values())


def test_an_edit_by_hand_is_recorded_once(room: Room) -> None:
    room.watch.round()
    room.machines.set("decode@gpu1", pid=10, dropins={"50-hand.conf": "[Service]\n"})
    assert room.watch.round() == ["out-1"]
    assert room.watch.round() == []
    (found,) = room.found()
    assert found.instance == "decode@gpu1"
    assert [one.what for one in found.found] == ["appeared"]
    assert room.ledger.verify() == []


def test_a_host_that_is_away_is_no_difference_and_is_compared_when_it_is_back(room: Room) -> None:
    room.watch.round()
    room.machines.away = True
    assert room.watch.round() == []
    room.machines.away = False
    room.machines.set("decode@gpu1", pid=11)
    assert room.watch.round() == ["out-1"]


def test_a_process_that_ends_between_the_note_and_the_record_loses_nothing(room: Room) -> None:
    room.watch.round()
    before = room.seen.all()["decode@gpu1"]
    assert before is not None
    event = e.OutsideSeen(
        instance="decode@gpu1", since=before.at, seen_at=b.NOW, found=(e.Difference(what="restarted"),)
    )
    then = before.model_copy(update={"incarnation": b.life(11)})
    room.seen.put("decode@gpu1", Noted(snapshot=before, found=Found(name="out-7", event=event, then=then)))
    room.machines.set("decode@gpu1", pid=11)
    assert room.watch.round() == ["out-7"]
    assert room.watch.round() == []
    assert len(room.found()) == 1


def test_a_process_that_ends_between_the_record_and_the_next_note_doubles_nothing(room: Room) -> None:
    room.watch.round()
    before = room.seen.all()["decode@gpu1"]
    assert before is not None
    event = e.OutsideSeen(
        instance="decode@gpu1", since=before.at, seen_at=b.NOW, found=(e.Difference(what="restarted"),)
    )
    then = before.model_copy(update={"incarnation": b.life(11)})
    room.seen.put("decode@gpu1", Noted(snapshot=before, found=Found(name="out-7", event=event, then=then)))
    room.ledger.append("out-7", event, expect_version=0)
    room.machines.set("decode@gpu1", pid=12)  # and once more since
    assert room.watch.round() == ["out-7", "out-1"]
    assert [one.found[0].was for one in room.found()] == [None, "pid 11"]


def test_an_instance_on_which_a_change_works_is_left_alone_until_it_has_ended(room: Room) -> None:
    room.watch.round()
    plan = stories.plan("decode-only")
    events: list[e.Event] = [
        stories.asked(),
        stories.planned(plan),
        stories.confirmed("decode-only"),
        stories.started("decode-only"),
    ]
    for version, event in enumerate(events):
        room.ledger.append("C-7", event, expect_version=version)
    room.machines.set("decode@gpu1", pid=11)
    room.machines.set("prefill@gpu1", pid=11)
    assert room.watch.round() == ["out-1"]
    assert [one.instance for one in room.found()] == ["prefill@gpu1"]
    gate = e.GatePassed(
        part="do",
        index=1,
        instance="decode@gpu1",
        gate="incarnation",
        verdict=stories.PASS,
        incarnation=b.life(11),
    )
    done = e.StepDone(part="do", index=1, step="restart", instance="decode@gpu1", host_at=b.NOW, before=b.life(10))
    begun = e.StepStarted(part="do", index=1, step="restart", instance="decode@gpu1")
    end = e.Succeeded(
        knob="TARGET_CTAS",
        order="decode-only",
        was={"decode@gpu1": None},
        now={"decode@gpu1": "512"},
        took_s=80.0,
    )
    after: list[e.Event] = [begun, done, gate, end]
    for version, event in enumerate(after, start=len(events)):
        room.ledger.append("C-7", event, expect_version=version)
    assert room.watch.round() == []
    assert len(room.found()) == 1


def test_what_changed_is_every_change_and_what_was_found(room: Room) -> None:
    room.watch.round()
    room.machines.set("decode@gpu1", pid=11)
    room.watch.round()
    room.ledger.append("C-7", stories.asked(), expect_version=0)
    changed = room.client.changed(b.NOW - 60)
    assert [change.id for change in changed.changes] == ["C-7"]
    assert [x.subject for x in changed.outside] == ["out-1"]
    assert not changed.more
    assert set(changed.seen) == set(INSTANCES)
    assert [x.event.kind for x in room.client.of_knob("TARGET_CTAS")] == ["outside_seen", "asked"]
    assert [x.subject for x in room.client.outside(5)] == ["out-1"]
