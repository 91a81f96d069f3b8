"""What was taken away on suspicion is found again: priced, with ways and times to get it back, and given back once."""

from __future__ import annotations

import pytest

from policies import events as e
from policies.intents import SetKnob
from tests.bot import stories
from tests.bot.suspected import WEEK_S, record, restored, reverted
from tests.conftest import Store
from workers.client import Client
from workers.ledger import Ledger
from workers.queue import Doorbell
from workers.suspicions import Suspicions

T0 = stories.T0


class Room:
    """A ledger with a clock that stands until it is moved."""

    def __init__(self, store: Store) -> None:
        self.now = T0
        self.ledger = Ledger(store.redis, lambda: self.now)
        self.client = Client(self.ledger, Doorbell(store.redis), stories.fleet(), lambda: self.now)


@pytest.fixture
def room(store: Store) -> Room:
    room = Room(store)
    room.ledger.append("ab-17", e.EvidenceRecorded(record=stories.record()), expect_version=0)
    record(room.ledger, "C-7", reverted(T0))
    return room


def test_a_revert_is_open_with_its_price_its_owner_and_its_review(room: Room) -> None:
    (kept,) = room.client.suspicions()
    assert kept.suspicion.id == "su-7"
    assert kept.suspicion.owner == "U0ANA"
    assert kept.record == stories.record()
    assert kept.suspicion.review_at == T0 + WEEK_S
    assert kept.asked.actor.id == "U0ANA"


def test_the_ways_back_have_times_only_where_every_restart_was_recorded(room: Room) -> None:
    ways = {way.order: way for way in room.client.suspicions()[0].ways}
    assert ways["co-restart"].instances == ("prefill@gpu1", "decode@gpu1", "router@gpu1")
    assert ways["co-restart"].estimate is None
    assert ways["decode-only"].estimate is None
    booted = stories.step(1, "decode-only")
    whole: list[e.Event] = [
        stories.asked(),
        stories.planned(stories.plan("decode-only")),
        stories.confirmed("decode-only"),
    ]
    record(room.ledger, "C-8", [*whole, stories.started("decode-only"), *stories.step(0, "decode-only"), *booted])
    ways = {way.order: way for way in room.client.suspicions()[0].ways}
    assert ways["co-restart"].estimate is None
    only = ways["decode-only"].estimate
    assert only is not None
    assert (only.median_s, only.n) == (68.2, 1)


def test_given_back_it_is_told_by_which_change_and_is_open_no_more(room: Room) -> None:
    record(room.ledger, "C-8", restored())
    assert room.client.suspicions() == []
    kept = room.client.suspicion("su-7")
    assert kept is not None
    assert (kept.standing.word, kept.standing.by) == ("reclaimed", "C-8")
    assert room.client.suspicion("su-8") is None


def test_taken_away_again_it_is_another_suspicion(room: Room) -> None:
    record(room.ledger, "C-8", restored())
    record(room.ledger, "C-9", reverted(T0, "C-9"))
    assert [kept.suspicion.id for kept in room.client.suspicions()] == ["su-9"]


def test_another_change_of_the_same_day_stays_and_is_never_offered(room: Room) -> None:
    fix = stories.asked().model_copy(update={"intent": SetKnob(knob="INFLIGHT_TIMEOUT", value="30")})
    end = e.Succeeded(knob="INFLIGHT_TIMEOUT", order="decode-only", word="set", was={}, now={}, took_s=1.0)
    plan = stories.plan("decode-only")
    record(room.ledger, "C-8", [fix, stories.planned(plan), stories.confirmed("decode-only"), stories.started(), end])
    (kept,) = room.client.suspicions()
    assert [change.id for change in kept.beside] == ["C-8"]
    assert kept.suspicion.gives_back is not None
    assert kept.suspicion.gives_back.knob == "TARGET_CTAS"


def test_a_change_of_another_day_is_not_told_beside_it(room: Room) -> None:
    room.now = T0 + 3 * 86_400
    fix = stories.asked().model_copy(update={"intent": SetKnob(knob="INFLIGHT_TIMEOUT", value="30")})
    end = e.Succeeded(knob="INFLIGHT_TIMEOUT", order="decode-only", word="set", was={}, now={}, took_s=1.0)
    plan = stories.plan("decode-only")
    record(room.ledger, "C-8", [fix, stories.planned(plan), stories.confirmed("decode-only"), stories.started(), end])
    assert room.client.suspicions()[0].beside == ()


def test_a_reminder_is_recorded_once_for_each_date_by_whoever_is_first(room: Room) -> None:
    assert room.client.remind_of_suspicions() == []
    room.now = T0 + WEEK_S
    other = Suspicions(Ledger(room.ledger.redis, lambda: room.now), stories.fleet())
    assert room.client.remind_of_suspicions() == ["su-7"]
    assert other.remind(room.now) == []
    room.now = T0 + 2 * WEEK_S + 5
    assert other.remind(room.now) == ["su-7"]
    assert room.client.remind_of_suspicions() == []
    dates = [x.event.due_at for x in room.client.asides(10) if isinstance(x.event, e.SuspicionReminded)]
    assert dates == [T0 + WEEK_S, T0 + 2 * WEEK_S]
    assert room.ledger.verify() == []


def test_what_was_given_back_is_reminded_of_no_more(room: Room) -> None:
    record(room.ledger, "C-8", restored())
    room.now = T0 + 3 * WEEK_S
    assert room.client.remind_of_suspicions() == []
