"""How the plan of a change over many replicas is shown: its waves on the card, its floors and conditions in Details."""

from __future__ import annotations

from typing import Any

import pytest

from bot.cards.details import details_card
from bot.cards.kit import Card, length
from bot.cards.progress import card
from bot.cards.story import Story
from policies import events as e
from policies.finding import Finding
from policies.intents import Restart
from sandbox.slack.blockrules import BlockJudge
from sandbox.slack.blockschema import BlockSchema
from tests.bot import stories
from tests.bot.test_cards import texts
from tests.policies import builders as b
from tests.policies.rolling_cases import planned
from tests.shared import shared

CASES = b.golden("cards_rolling/planned.json")
ALONE = (
    "*",
    "wave",
    "at once",
    "at least",
    "⚠",
    "... ",
    "decode is",
    "decode will",
    "left alone",
    "prefill is",
    "each ",
    "would cut",
    "in flight",
)


def story_of(case: dict[str, Any]) -> Story:
    """A change with the plans of the case."""
    asked: dict[str, Any] = {}
    if "restart" in case:
        asked["intent"] = Restart(scope=case["restart"], order=case.get("order"))
    plans = tuple(plan.model_copy(update={"load": load_of(case)}) for plan in planned(case).plans)
    events: list[e.Event] = [b.asked().model_copy(update=asked), b.planned(plans)]
    return Story.of(stories.chained(events), (), b.fleet())


def load_of(case: dict[str, Any]) -> tuple[Finding, ...]:
    """So many requests in flight on the instances that the case names."""
    return tuple(
        Finding(
            code="load.in-flight",
            effect="note",
            values={"instance": i, "running": n, "queued": 0, "at": b.NOW, "url": "http://127.0.0.1/metrics"},
        )
        for i, n in case.get("running", {}).items()
    )


def about_replicas(drawn: Card) -> list[str]:
    """The lines that say how replicas are taken in turn, in the order of the card."""
    return [line for line in texts(drawn)[1:] if line.startswith(ALONE)]


@pytest.mark.parametrize("case", CASES, ids=b.ids(CASES))
def test_the_card_says_the_waves_who_goes_first_and_what_stays_in_service(case: dict[str, Any]) -> None:
    assert about_replicas(card(story_of(case))) == case["card"]


DETAILED = [case for case in CASES if "details" in case]


@pytest.mark.parametrize("case", DETAILED, ids=b.ids(DETAILED))
def test_details_has_floors_conditions_and_the_steps_of_each_wave(case: dict[str, Any]) -> None:
    told = texts(details_card(story_of(case)))
    start = next(at for at, line in enumerate(told) if line.startswith("*decode-only*"))
    end = next(at for at, line in enumerate(told) if line.startswith("the digest covers"))
    plain = [line for line in told[start + 1 : end] if not line.startswith("    then ")]
    assert plain == case["details"]


@pytest.fixture(scope="module")
def judge() -> BlockJudge:
    return BlockJudge(BlockSchema(shared("slack")))


@pytest.mark.parametrize("case", CASES, ids=b.ids(CASES))
def test_slack_takes_every_card_and_its_buttons_stay(case: dict[str, Any], judge: BlockJudge) -> None:
    story = story_of(case)
    for drawn in (card(story), details_card(story)):
        assert judge.blocks(list(drawn.blocks), "message") == []
        assert sum(map(length, drawn.blocks)) <= 13_200
    assert texts(card(story))[-1].endswith("[Deny] [Details]")


def test_a_plan_without_replicas_is_shown_as_ever() -> None:
    lines = about_replicas(card(story_of({"order": "co-restart"})))
    assert lines == ["*co-restart*: prefill → decode → router"]
    assert not any("wave" in line for line in texts(details_card(story_of({"order": "co-restart"}))))


def test_a_person_who_confirms_reads_how_many_are_restarted() -> None:
    drawn = card(story_of({"prefill": 2, "decode": 3, "order": "co-restart"}))
    button = drawn.blocks[-1]["elements"][0]
    assert button["confirm"]["text"]["text"].startswith("this restarts 2 prefill → 3 decode → router and changes")


def test_the_undo_is_said_to_begin_with_the_last_wave() -> None:
    told = texts(card(story_of({"decode": 2, "order": "decode-only"})))[-2]
    assert "undo: back to unset, the last wave first, whatever stays in service meanwhile" in told
    assert "the last wave" not in texts(card(story_of({"order": "decode-only"})))[-2]


def test_a_fleet_of_forty_waves_leaves_room_for_everything_else(judge: BlockJudge) -> None:
    story = story_of({"decode": 5})
    (event,) = [x.event for x in story.entries if isinstance(x.event, e.Planned)]
    plan = event.plans[1]
    steps = tuple(step.model_copy(update={"wave": n}) for n in range(1, 41) for step in plan.steps[:2])
    many = b.planned((plan.model_copy(update={"steps": steps, "undo": steps}),))
    story = Story.of(stories.chained([b.asked(), many]), (), b.fleet())
    told = texts(card(story))
    assert [line for line in told if "wave" in line][-1] == "... 34 more waves under Details"
    assert told[-1].endswith("[Deny] [Details]")
    assert judge.blocks(list(details_card(story).blocks), "message") == []
