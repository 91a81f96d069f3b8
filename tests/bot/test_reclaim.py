"""What was taken away on suspicion is listed with its price and a button that plans it back; owners are reminded."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from bot.asides import Asides
from bot.cards.kit import Card
from bot.cards.progress import succeeded
from bot.cards.story import Brought, Story
from bot.cards.suspicion import price_text, reclaim_card
from bot.posting import Poster
from bot.slack import make_client
from policies import events as e
from policies.intents import RestoreKnob
from policies.suspicion import Price
from sandbox.slack import Fault, SlackSandbox
from tests.bot import stories
from tests.bot.suspected import WEEK_S, record, restored, reverted
from tests.bot.test_hearing import Room
from tests.conftest import Store
from workers.drawn import Drawn, Pointer

T0 = stories.T0
HOUR_S = 3600.0


@pytest.fixture
def room(store: Store, slack: SlackSandbox) -> Room:
    room = Room(store, slack)
    room.ledger.append("ab-17", e.EvidenceRecorded(record=stories.record()), expect_version=0)
    record(room.ledger, "C-7", reverted(T0))
    room.now = T0 + 6 * HOUR_S
    return room


def words(card: Card) -> str:
    return "\n".join(str(b.get("text", {}).get("text", "")) for b in card.blocks)


def buttons(card: Card) -> list[dict[str, Any]]:
    return [element for b in card.blocks if b["type"] == "actions" for element in b["elements"]]


def test_the_list_has_price_age_owner_review_and_both_orders(room: Room) -> None:
    card = reclaim_card(room.client.suspicions(), room.now)
    said = words(card)
    for part in ("su-7", "`TARGET_CTAS` = `512`", "6 h 00 min ago by <@U0ANA> (C-7)", "`multi-round hang`"):
        assert part in said
    assert "+12.8 % C64" in said
    assert "+5.7 % C96" in said
    assert "+1.2 % C80" in said
    assert "n=1 per arm, no interval" in said
    assert "cause: not established" in said
    assert "*co-restart*: prefill → decode → router · not all its restarts are recorded" in said
    assert "*decode-only*: decode · not all its restarts are recorded" in said
    (button,) = buttons(card)
    assert button["text"]["text"] == "Restore TARGET_CTAS=512"
    assert json.loads(button["value"]) == {"c": "su-7"}


def test_nothing_to_reclaim_is_said(store: Store, slack: SlackSandbox) -> None:
    assert "no suspicion is open" in Room(store, slack).command("/knob reclaim")


def test_reclaim_is_answered_to_the_asker(room: Room) -> None:
    assert "su-7" in room.command("/knob reclaim")


def test_the_button_asks_for_the_restore_once_and_is_planned_like_any_other(room: Room) -> None:
    told = room.click("clawback.reclaim.su-7", '{"c":"su-7"}', "U0ANA")
    (asked,) = (x for x in room.ledger.index("changes") if x.subject != "C-7")
    assert isinstance(asked.event, e.Asked)
    assert asked.event.intent == RestoreKnob(knob="TARGET_CTAS", value="512")
    assert asked.event.normalised == "/knob restore TARGET_CTAS=512"
    assert asked.event.actor.id == "U0ANA"
    assert asked.subject in told


def test_the_button_of_what_was_given_back_says_so_and_asks_for_nothing(room: Room) -> None:
    record(room.ledger, "C-8", restored())
    told = room.click("clawback.reclaim.su-7", '{"c":"su-7"}', "U0ANA")
    assert "su-7 is closed: C-8 gave the value back" in told
    assert len(room.ledger.index("changes")) == 2


@pytest.mark.parametrize("value", ['{"c":"su-99"}', '{"c":"C-7"}', '{"c":"<!channel>"}'])
def test_a_button_that_names_no_suspicion_asks_for_nothing(room: Room, value: str) -> None:
    told = room.click("clawback.reclaim.su-99", value, "U0ANA")
    assert "there is no suspicion" in told
    assert "<!channel>" not in told
    assert len(room.ledger.index("changes")) == 1


def test_a_price_says_its_interval_or_that_there_is_none() -> None:
    assert price_text(Price(load="C64", ratio=1.128, n=1)) == "+12.8 % C64 (n=1, no interval)"
    known = Price(load="C96", ratio=1.057, n=5, low=1.041, high=1.073)
    assert price_text(known) == "+5.7 % C96 (n=5, +4.1 to +7.3 %)"


def test_the_end_of_a_revert_tells_what_it_left() -> None:
    story = Story.of(stories.chained(reverted(T0), "C-7"))
    said = succeeded(story)
    assert "suspicion su-7 is open: cause: not established" in said
    assert "ab-17: given up with it: *+12.8 % C64 (n=1, no interval)" in said
    assert "review by <@U0ANA>" in said
    assert "`/knob reclaim` lists it" in said


def test_the_end_of_a_restore_tells_what_it_gave_back() -> None:
    before = stories.chained(reverted(T0), "C-7")
    story = Story.of(stories.chained(restored(), "C-8"))
    assert "is closed" not in succeeded(story)
    told = replace(story, brought=Brought.of((before[0], before[-1])))
    assert "suspicion su-7 is closed: the value is given back" in succeeded(told)


# reminders


class Reminding:
    """A narrator of reminders, with the thread of C-7 drawn."""

    def __init__(self, room: Room, slack: SlackSandbox) -> None:
        self.room = room
        self.slack = slack
        self.web = make_client(slack.bot_token, slack.base_url, timeout_s=3)
        self.drawn = Drawn(room.ledger.redis)
        parent = self.web.chat_postMessage(channel="C0PERF", text="the card of C-7")
        self.thread_ts = str(parent["ts"])
        self.drawn.put("C-7", Pointer(channel="C0PERF", thread_ts=self.thread_ts, card_ts=self.thread_ts, seq=99))
        self.rung: list[str] = []

    def asides(self) -> Asides:
        return Asides(self.room.client, self.drawn, Poster(self.web), lambda: self.room.now, self.rung.append)

    def round(self) -> None:
        """One sweep, and what was rung for."""
        self.asides().sweep()
        for subject in self.rung:
            self.asides().draw(subject)
        self.rung.clear()

    def reminders(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.slack.people.transcript("C0PERF")
        return [m for m in found if m["thread_ts"] == self.thread_ts and m["ts"] != self.thread_ts]


@pytest.fixture
def reminding(room: Room, slack: SlackSandbox) -> Reminding:
    return Reminding(room, slack)


def test_the_owner_is_mentioned_in_the_thread_on_the_date_and_no_earlier(reminding: Reminding) -> None:
    reminding.room.now = T0 + WEEK_S - 1
    reminding.round()
    assert reminding.reminders() == []
    reminding.room.now = T0 + WEEK_S
    reminding.round()
    (one,) = reminding.reminders()
    assert "<@U0ANA> su-7 is still open" in one["text"]
    assert "+12.8 % C64 (n=1, no interval)" in one["text"]
    assert one["metadata"]["event_payload"]["change"] == "su-7"
    reminding.round()
    assert len(reminding.reminders()) == 1


def test_one_that_was_recorded_and_not_drawn_is_drawn_by_the_next(reminding: Reminding) -> None:
    reminding.room.now = T0 + WEEK_S
    assert reminding.room.client.remind_of_suspicions() == ["su-7"]  # and then that process died
    reminding.round()
    reminding.round()
    assert len(reminding.reminders()) == 1


def test_an_answer_that_was_lost_is_not_posted_again(reminding: Reminding) -> None:
    reminding.room.now = T0 + WEEK_S
    reminding.slack.faults.add(Fault("reset_after_commit", "chat.postMessage", count=3))
    reminding.round()
    reminding.room.now += 60
    for subject in reminding.drawn.due(reminding.room.now):
        reminding.asides().draw(subject)
    assert len(reminding.reminders()) == 1


def test_a_change_that_is_told_to_nobody_reminds_nobody(room: Room, slack: SlackSandbox) -> None:
    reminding = Reminding(room, slack)
    room.ledger.redis.delete("clawback:drawn:C-7")
    room.now = T0 + WEEK_S
    reminding.round()
    assert reminding.reminders() == []
