"""What was refused for one side of a contract is offered as one change on all: a button, and the words to type."""

from __future__ import annotations

import pytest

from bot.cards.buttons import Carried
from bot.cards.progress import card
from bot.cards.story import Story
from bot.grammar import parse
from bot.heard import HeardAction
from policies import events as e
from policies.finding import Finding
from policies.intents import Actor, SetKnob, Where
from sandbox.slack import SlackSandbox
from tests.bot.test_hearing import Room
from tests.conftest import Store

BEN = "U0BEN"
SIDES: dict[str, str | int | float | None] = {
    "contract": "page-size",
    "knob": "TARGET_CTAS",
    "value": "128",
    "here": "decode@gpu1 128",
    "there": "prefill@gpu1 64",
}
ONE_SIDE = Finding(code="contract.one-side", effect="refuse", values=SIDES)
INTENT = SetKnob(knob="TARGET_CTAS", value="128", scope="decode", because="faster", ticket="INC-7")


@pytest.fixture
def room(store: Store, slack: SlackSandbox) -> Room:
    return Room(store, slack)


def refused(room: Room, *findings: Finding) -> str:
    """A change of ana's that was refused for these reasons."""
    change = room.ledger.new_id("C")
    ana = Actor(id="U0ANA", roles=("engineers",))
    where = Where(channel="C0PERF")
    asked = e.Asked(intent=INTENT, actor=ana, where=where, said="s", normalised="n", fleet_sha256="f" * 64)
    told: tuple[e.Event, ...] = (asked, e.Refused(findings=findings))
    for version, event in enumerate(told):
        room.ledger.append(change, event, expect_version=version)
    return change


def click(room: Room, change: str, user: str = BEN) -> str:
    """Click the button of that change."""
    before = len(room.slack.workspace.messages)
    heard = HeardAction(
        action_id=f"clawback.together.{change}",
        value=Carried(c=change).text(),
        user=user,
        team="T0SANDBOX",
        channel="C0PERF",
        message_ts="1764600000.000100",
        thread_ts=None,
        response_url=room.slack.tickets.new_response_url("actions", "C0PERF", user),
    )
    item = room.inbox.put(f"{change}:{user}", heard.model_dump(mode="json")).id
    room.hearing.hear(item)
    room.hearing.hear(item)
    (answer,) = room.slack.workspace.messages[before:]
    return answer.text


def test_the_button_plans_it_on_all_in_the_name_of_who_clicked(room: Room) -> None:
    change = refused(room, ONE_SIDE)
    click(room, change)
    (asked, first) = room.client.recent(2)
    assert first.id == change
    assert asked.asked is not None
    assert asked.asked.intent == INTENT.model_copy(update={"scope": None})
    assert (asked.asked.actor.id, asked.state) == (BEN, "asked")


def test_a_button_of_something_else_plans_nothing(room: Room) -> None:
    other = Finding(code="rule.may-not-ask", effect="refuse", values={"actor": "U0ANA", "role": "x", "line": 1})
    change = refused(room, other)
    assert "nothing that can be read" in click(room, change)
    assert [one.id for one in room.client.recent(5)] == [change]


def test_the_card_has_the_button_and_words_that_read_back_as_the_same(room: Room) -> None:
    change = refused(room, ONE_SIDE)
    drawn = card(Story.of(room.ledger.entries(change)))
    (row,) = [block for block in drawn.blocks if block["type"] == "actions"]
    assert [button["text"]["text"] for button in row["elements"]] == ["Plan it on all of TARGET_CTAS"]
    said = next(text for block in drawn.blocks if "/knob set" in (text := str(block.get("text", {}).get("text", ""))))
    words = said.split("as one change: `")[1].split("`")[0]
    assert parse(words).command == INTENT.model_copy(update={"scope": None})
