"""Cards and lines as people see them, and that Slack takes whatever goes into them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.cards import answers, buttons
from bot.cards.details import details_card
from bot.cards.kit import Card, cut, fenced, fitted, length, made, section
from bot.cards.load import load_lines
from bot.cards.progress import card
from bot.cards.story import Brought, Story
from bot.commands import help_lines
from bot.thread import TABLE, line
from policies import events as e
from policies.change import fold
from policies.finding import Finding
from policies.intents import Act, RevertKnob
from policies.plan import Target
from sandbox.slack.blockrules import BlockJudge
from sandbox.slack.blockschema import BlockSchema
from tests.bot import stories
from tests.shared import shared

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "cards"
CASES = sorted(GOLDEN.glob("*.json"))


@pytest.fixture(scope="module")
def judge() -> BlockJudge:
    return BlockJudge(BlockSchema(shared("slack")))


def texts(drawn: Card) -> list[str]:
    """Every text of a card, block by block, a line each; buttons in brackets."""
    told: list[str] = []
    for block in drawn.blocks:
        if block["type"] == "actions":
            told.append(" ".join(f"[{button['text']['text']}]" for button in block["elements"]))
        elif block["type"] == "context":
            told += [str(element["text"]) for element in block["elements"]]
        else:
            told += str(block["text"]["text"]).split("\n")
    return told


def story_of(case: dict[str, Any]) -> Story:
    """The story of a golden case. `brought` has the first and last event of the knob's last change, and its age."""
    entries = stories.chained([e.EVENT.validate_python(event) for event in case["events"]])
    records = (stories.record(),) if case["evidence"] else ()
    story = replace(Story.of(entries, records, stories.fleet()), groups=case.get("groups", {}))
    if (before := case.get("brought")) is None:
        return story
    first, last = stories.chained([e.EVENT.validate_python(event) for event in before["events"]], before["change"])
    ended = last.model_copy(update={"at": stories.T0 - before["age_s"]})
    return replace(story, brought=Brought.of((first, ended)))


def drawn_of(case: dict[str, Any]) -> dict[str, Any]:
    """What a golden case must come out as."""
    story = story_of(case)
    lines = [said for chapter in story.chapters() if (said := line(chapter)) is not None]
    drawn = {"text": card(story).text, "card": texts(card(story)), "thread": [str(said) for said in lines]}
    return {**drawn, "details": texts(details_card(story))} if "details" in case["drawn"] else drawn


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_a_change_is_drawn_as_its_golden_case_says(path: Path, judge: BlockJudge) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))
    assert drawn_of(case) == case["drawn"]
    for chapter in story_of(case).chapters():
        assert judge.blocks(list(card(chapter).blocks), "message") == []
        assert judge.blocks(list(details_card(chapter).blocks), "message") == []


def test_there_are_golden_cases() -> None:
    assert len(CASES) >= 8


def test_every_event_has_its_place_in_the_table() -> None:
    kinds = {kind.model_fields["kind"].default for kind in e.Event.__args__[0].__args__}
    assert set(TABLE) == kinds


def test_a_button_carries_what_was_seen() -> None:
    story = Story.of(stories.chained([stories.asked(), stories.planned()]), (), stories.fleet())
    row = next(block for block in card(story).blocks if block["type"] == "actions")["elements"]
    act = buttons.read(row[0]["action_id"], row[0]["value"])
    assert isinstance(act, Act)
    assert (act.kind, act.change, act.order, act.digest) == ("confirm", "C-142", "co-restart", stories.plan().digest)
    assert row[0]["confirm"]["text"]["text"] == (
        "this restarts prefill → decode → router and changes `TARGET_CTAS` from unset to `512`"
    )
    assert [button["text"]["text"] for button in row] == [
        "Confirm co-restart",
        "Confirm decode-only",
        "Deny",
        "Details",
    ]
    assert buttons.read(row[3]["action_id"], row[3]["value"]) == buttons.Details("C-142", stories.plan().digest)


@pytest.mark.parametrize(
    ("action_id", "value"),
    [
        ("other.confirm.x", '{"c":"C-1"}'),
        ("clawback.reboot", '{"c":"C-1"}'),
        ("clawback.deny", "not json"),
        ("clawback.deny", '{"c":"C-1","x":1}'),
        ("clawback.deny", '{"c":5}'),
        ("clawback.deny", ""),
    ],
)
def test_a_forged_button_is_no_word(action_id: str, value: str) -> None:
    assert buttons.read(action_id, value) is None


def labels(drawn: Card) -> list[str]:
    rows = [block["elements"] for block in drawn.blocks if block["type"] == "actions"]
    return [button["text"]["text"] for row in rows for button in row]


def test_a_dry_run_can_only_be_looked_at() -> None:
    story = Story.of(stories.chained([stories.asked(), stories.planned(dry=True)]), (), stories.fleet())
    assert labels(card(story)) == ["Details"]
    assert "please decide" not in str(line(story))


def test_a_change_offers_what_can_be_said_about_it_and_nothing_once_it_has_ended() -> None:
    whole = Story.of(stories.chained(stories.succeeded()), (), stories.fleet())
    offered: dict[str, list[str]] = {}
    for chapter in whole.chapters():
        offered[chapter.change.state] = labels(card(chapter))
    assert offered == {
        "asked": [],
        "planned": ["Confirm co-restart", "Confirm decode-only", "Deny", "Details"],
        "approved": ["Abort", "Details"],
        "running": ["Abort", "Details"],
        "succeeded": [],
    }


def test_a_card_for_ten_seconds_has_at_most_a_dozen_lines() -> None:
    for path in CASES:
        case = json.loads(path.read_text(encoding="utf-8"))
        if case["events"][-1]["kind"] == "planned" and "many" not in path.stem:
            assert len(texts(card(story_of(case)))) <= 12, path.stem


def test_the_end_of_a_restart_is_told_only_from_restarts_that_were_recorded() -> None:
    def waiting(planned: e.Planned) -> str:
        events: list[e.Event] = [stories.asked(), planned, stories.confirmed(), stories.started()]
        story = Story.of(stories.chained([*events, *stories.step(0)[:2]]), (), stories.fleet())
        return "".join(texts(card(story)))

    unknown, known = waiting(stories.planned(stories.plan(estimate=False))), waiting(stories.planned())
    assert "waiting for health since" in unknown
    assert "more, until" not in unknown
    assert "about 2 min 40 s more, until <!date^1764600260^" in known


def test_instances_without_requests_are_left_out_beside_busy_ones_and_told_when_all_are_idle() -> None:
    def told(*running: int) -> str:
        values = [
            {"instance": f"d@gpu{n}", "running": count, "queued": 0, "at": stories.T0}
            for n, count in enumerate(running)
        ]
        (line,) = load_lines([Finding(code="load.in-flight", effect="note", values={**one}) for one in values])
        return str(line)

    assert "53 running and 0 queued on d@gpu1 (" in told(0, 53)
    assert "d@gpu0" not in told(0, 53)
    assert "0 running and 0 queued on d@gpu0, 0 running and 0 queued on d@gpu1 (" in told(0, 0)


def test_what_is_shown_as_it_stands_cannot_leave_its_place() -> None:
    block = fenced("+a ``` *b* <!channel> @here\n" + "x" * 5000 + "\n" + "y\n" * 3000)
    text = block["text"]["text"]
    assert len(text) <= 3000
    assert text.count("`") == 6
    assert "<!" not in text
    assert text.startswith("```+a ''' *b* &lt;!channel&gt;")
    assert re.search(r"```\n\.\.\. \d+ more lines$", text)


def test_details_of_a_plan_that_was_replaced_say_so() -> None:
    story = Story.of(stories.chained([stories.asked(), stories.planned()]), (), stories.fleet())
    assert "was replaced" not in details_card(story, stories.plan().digest).text
    assert "was replaced" in details_card(story, "0" * 64).text
    asked = Story.of(stories.chained([stories.asked()]), (), stories.fleet())
    assert details_card(asked).text == "C-142 has no plan: it is asked"


def test_a_reason_that_somebody_states_is_not_shown_as_a_cause() -> None:
    intent = RevertKnob(knob="TARGET_CTAS", because="multi-round hang <!channel>")
    asked = stories.asked().model_copy(update={"intent": intent})
    drawn = card(Story.of(stories.chained([asked, stories.planned()]), (), stories.fleet()))
    assert "because `multi-round hang &lt;!channel&gt;` · cause: not established" in texts(drawn)[0]


def test_an_estimate_is_shown_only_where_restarts_were_recorded() -> None:
    drawn = texts(card(Story.of(stories.chained([stories.asked(), stories.planned()]), (), stories.fleet())))
    assert "*co-restart*: prefill → decode → router · about 2 min 40 s (p90 3 min 05 s, n=7 recorded)" in drawn
    assert "*decode-only*: decode" in drawn


def test_a_hundred_instances_warnings_and_a_huge_reason_still_fit(judge: BlockJudge) -> None:
    warning = [
        Finding(
            code="plan.dropin-foreign", effect="warn", values={"instance": f"d@h{i}", "path": "/x" * 300, "found": "y"}
        )
        for i in range(100)
    ]
    targets = tuple(
        Target(
            instance=f"decode@gpu{i}",
            variable=stories.VARIABLE,
            now="x" * 400 + str(i),
            now_decided_by="/etc/" + "a" * 300 + ":1",
            then="512",
            then_decided_by="/etc/" + "b" * 300 + ":2",
        )
        for i in range(100)
    )
    plan = stories.plan().model_copy(update={"warnings": tuple(warning), "targets": targets})
    many = tuple(plan.model_copy(update={"order": f"order-{i}"}) for i in range(30))
    events: list[e.Event] = [stories.asked(), stories.planned(*many)]
    for story in (
        Story.of(stories.chained(events), (stories.record(),) * 20, stories.fleet()),
        Story.of(stories.chained([*events, e.Denied(actor=stories.ben())]), (stories.record(),) * 20, stories.fleet()),
    ):
        for drawn in (card(story), details_card(story)):
            assert judge.blocks(list(drawn.blocks), "message") == []
            assert len(drawn.text) <= 4000
            assert sum(map(length, drawn.blocks)) < 13_200
        assert any("more lines" in text for text in texts(details_card(story)))
    assert "... 96 more instances" in texts(card(Story.of(stories.chained(events), (), stories.fleet())))


def test_long_lists_end_with_how_much_more_there_is() -> None:
    assert fitted(["a" * 40] * 10, 150) == "\n".join(["a" * 40] * 2 + ["... 8 more lines"])
    many = made("t", [section("x" * 2000) for _ in range(60)], [section("tail")])
    assert len(many.blocks) <= 50
    assert many.blocks[-1]["text"]["text"] == "tail"


def test_markup_is_never_cut_inside_a_token_or_a_code_span() -> None:
    text = "a" * 50 + " <!date^1764600000^{time_secs}|14:40:00 UTC> tail tail tail tail tail"
    for most in range(60, 110):
        short = cut(text, most)
        assert len(short) <= most
        assert short.count("<") == short.count(">")
    assert cut("`" + "b" * 200, 100).count("`") == 2
    assert "&am" not in cut("x" * 55 + "&amp;" * 20, 99).replace("&amp;", "")


def test_answers_fit_however_much_there_is_to_say(judge: BlockJudge) -> None:
    changes = [fold(f"C-{i}", stories.chained([stories.asked()], f"C-{i}")) for i in range(100)]
    for drawn in (
        answers.status_all(changes),
        answers.status_all([]),
        answers.helped(help_lines(None, lambda _: True)),
        answers.told("x" * 9000),
        answers.status_one(Story.of(stories.chained([stories.asked(), stories.planned()]), (), stories.fleet())),
    ):
        assert judge.blocks(list(drawn.blocks), "message") == []
        assert 0 < len(drawn.text) <= 4000
        assert all(block["type"] != "actions" for block in drawn.blocks)


def test_what_a_revert_cites_is_shown_as_the_words_of_the_person() -> None:
    case = json.loads((GOLDEN / "planned-revert.json").read_text(encoding="utf-8"))
    case["events"][0]["intent"]["citing"] = ["queue_reqs > 0", "a < 1"]
    assert "they cite `queue_reqs &gt; 0, a &lt; 1`, which was not checked" in texts(card(story_of(case)))[0]
