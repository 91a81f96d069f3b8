"""Evidence in chat: the form is opened, filled in and judged; records and their pictures are shown."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator

import pytest
from PIL import Image

from policies.recording import typed
from sandbox.slack import Fault, SlackSandbox
from tests.bot import stories
from tests.bot.evidence_room import FILES_A, FILES_B, Room
from tests.bot.test_cli_evidence_judge import one
from tests.conftest import Store

SECRET = "sk-live-51Hq8Zk2pLw9Vx7"


@pytest.fixture
def room(store: Store, slack: SlackSandbox) -> Iterator[Room]:
    made = Room(store, slack)
    yield made
    made.redis.close()


def test_a_form_becomes_a_record_with_verdict_and_pictures_for_everybody(room: Room) -> None:
    assert room.say("/knob evidence add") == []  # the form speaks for itself
    assert room.view()["_opened_by"] == "U0ANA"
    assert room.fill(correctness="0/200", note="after the *driver* update <!channel>").wait()
    assert room.slack.workspace.views == {}
    room.work()
    (record,) = room.records()
    assert (record.id, record.by, record.klass, record.value, record.baseline) == (
        "ab-1", "U0ANA", "improves", "512", None,
    )  # fmt: skip
    assert [(f.file, f.arm) for f in record.files] == [(n, "A") for n, _ in FILES_A] + [(n, "B") for n, _ in FILES_B]
    assert room.told("ana") == ["ab-1 is recorded as improves: verdict and pictures follow in this channel"]
    card, pictures = room.public()
    assert card["text"].startswith("TARGET_CTAS = 512: improves\nevidence ab-1, improves,")
    assert "correctness 0 of 200 differ (up to 1.5 % could: rule of three, 95 % bound)" in card["text"]
    assert "after the driver update &lt;!channel&gt;" in card["text"]
    assert pictures["thread_ts"] == card["ts"]
    assert [file["name"] for file in pictures["files"]] == ["ab-1-effect.png", "ab-1-runs.png"]
    assert pictures["files"][0]["alt_txt"].startswith("TARGET_CTAS 512 against unset: improves: output tok/s")
    stored = room.slack.workspace.files.get(pictures["files"][0]["id"])
    assert stored is not None
    assert stored.data is not None
    with Image.open(io.BytesIO(stored.data)) as picture:
        assert picture.size == (1200, 900)


def test_the_same_files_again_are_no_second_record(room: Room) -> None:
    for _ in range(2):
        room.say("/knob evidence add")
        room.fill().wait()
        room.work()
    assert len(room.records()) == 1
    assert room.told("ana")[-1] == "these files are recorded already as ab-1, improves"
    assert len(room.public()) == 2  # shown once


def test_bad_news_is_recorded_and_told_alike(room: Room) -> None:
    room.say("/knob evidence add")
    room.fill(FILES_B, FILES_A).wait()
    room.work(drawing=False)
    assert [record.klass for record in room.records()] == ["regresses"]
    assert room.told("ana") == ["ab-1 is recorded as regresses: verdict and pictures follow in this channel"]


def test_files_that_are_dropped_with_a_mention_are_chosen_in_the_form_and_answered_in_the_thread(room: Room) -> None:
    parent = room.slack.people.say("ana", "perf", "results of tonight")
    room.slack.people.share("ana", "perf", [*FILES_A, *FILES_B], "@clawback evidence add", parent.ts)
    assert room.slack.people.wait_for(room.inbox.waiting)
    room.work()
    assert room.told("ana") == ["8 files came with this: the form asks which of them are of A and which of B"]
    asked = room.slack.people.transcript("perf")[-1]
    assert room.slack.people.click("ana", "perf", asked["ts"], "clawback.evidence-form").wait()
    room.work()
    ids = [file.id for file in room.slack.workspace.files.all()]
    options = room.view()["blocks"][3]["element"]["options"]
    assert [option["text"]["text"] for option in options] == [name for name, _ in (*FILES_A, *FILES_B)]
    assert room.fill(ids[:4], ids[4:]).wait()
    room.work()
    assert [record.klass for record in room.records()] == ["improves"]
    assert {message["thread_ts"] for message in room.public()} == {parent.ts}


def test_a_mention_without_files_gets_the_button_for_the_form_too(room: Room) -> None:
    room.slack.people.mention("ana", "perf", "evidence add")
    assert room.slack.people.wait_for(room.inbox.waiting)
    room.work()
    assert "drop them here with a message that mentions me" in room.told("ana")[0]
    asked = room.slack.people.transcript("perf")[-1]
    assert room.slack.people.click("ana", "perf", asked["ts"], "clawback.evidence-form").wait()
    room.work()
    assert room.view()["blocks"][3]["element"]["type"] == "file_input"


def test_what_is_wrong_is_said_at_its_field_and_the_form_stays_open(room: Room) -> None:
    room.say("/knob evidence add")
    for fields, block, said in (
        ({"value": "9999"}, "value", "9999 is outside the range of TARGET_CTAS, expected 1 to 4096"),
        ({"value": "512; reboot"}, "value", "a whole number"),
        ({"baseline": "512"}, "baseline", "both arms had the same value"),
        ({"baseline": "x"}, "baseline", "a whole number"),
        ({"correctness": "fine"}, "correctness", "0/200"),
        ({"correctness": "9/3"}, "correctness", "9 answers differ of 3"),
    ):
        assert room.fill(**fields).wait()
        assert list(room.view()["_errors"]) == [block]
        assert said in room.view()["_errors"][block]
    assert room.inbox.waiting() == []
    assert room.fill().wait()
    assert room.slack.workspace.views == {}


def test_files_that_are_missing_too_many_too_large_or_in_both_arms_are_named_at_once(room: Room) -> None:
    room.say("/knob evidence add")
    room.fill([], FILES_B).wait()
    assert room.view()["_errors"] == {"arm-a": "no file is chosen, expected at least one"}
    room.fill([("<!here> big.json", b" " * 9 * 2**20)], FILES_B).wait()
    assert room.view()["_errors"] == {"arm-a": "‹!here> big.json has 9.0 MiB, expected at most 8"}
    room.fill([("x.json", b"{}")] * 11, [("y.json", b"[]")] * 10).wait()
    assert room.view()["_errors"]["arm-b"] == "21 files in both arms, expected at most 20"
    assert room.inbox.waiting() == []


NO_RESULTS = {
    "prose.txt": b"just words",
    "bomb.json.gz": gzip.compress(b"0" * 2**22),
    "nested.json": b"[" * 100_000,
    "binary.json": bytes(range(256)) * 40,
    "secret.json": json.dumps({"authorization": f"Bearer {SECRET}", "x": SECRET}).encode(),
    "cut.json": one(1000).encode()[:200] + SECRET.encode(),
    "`*x*` <!channel>.json": b"nothing",
}


def test_a_file_that_is_no_result_is_refused_by_name_and_nothing_of_it_is_shown(room: Room) -> None:
    for name, data in NO_RESULTS.items():
        room.say("/knob evidence add")
        assert room.fill([(name, data)], FILES_B).wait()
        room.work()
        said = room.told("ana")[-1].replace("*", "")
        assert said.startswith("nothing is recorded: ")
        assert name.replace("`", "").replace("*", "").replace("<!channel>", "&lt;!channel&gt;") in said
    assert len(room.told("ana")) == len(NO_RESULTS)
    assert (room.records(), room.public()) == ([], [])
    assert SECRET not in json.dumps(room.slack.people.transcript("perf"))


def test_who_may_neither_ask_nor_approve_opens_no_form_and_records_nothing(room: Room) -> None:
    room.slack.workspace.add_user("cyd", user_id="U0CYD")
    room.slack.workspace.channels["C0PERF"].members.add("U0CYD")
    (said,) = room.say("/knob evidence add", user="cyd")
    assert "may not record evidence for TARGET_CTAS" in said
    (said,) = room.say("/knob evidence add", user="gus")
    assert "guest" in said
    assert room.slack.workspace.views == {}


def test_who_loses_the_role_between_opening_and_sending_records_nothing(room: Room) -> None:
    room.say("/knob evidence add")
    nobody = {name: role.model_copy(update={"users": ()}) for name, role in room.fleet.roles.items()}
    room.hearing._identity._fleet = room.fleet.model_copy(update={"roles": nobody})
    room.fill().wait()
    room.work()
    assert "may not record evidence for TARGET_CTAS" in room.told("ana")[-1]
    room.hearing._identity._fleet = room.fleet
    room.say("/knob evidence add")
    room.slack.admin.set_user("ana", deleted=True)
    room.fill().wait()
    room.work()
    assert room.records() == []
    assert room.public() == []


def test_a_trigger_that_is_too_old_is_said(room: Room) -> None:
    assert room.slack.people.command("ana", "perf", "/knob evidence add").wait()
    room.slack.tickets.age(seconds=4)
    room.work()
    assert room.told("ana") == ["the form could not be opened in the 3 s that slack gives for it: say it again"]


def test_where_the_bot_cannot_speak_no_form_is_opened(room: Room) -> None:
    room.slack.workspace.add_channel("away", ["U0ANA"], channel_id="C0AWAY", with_bot=False)
    assert "the bot is not in this channel" in room.say("/knob evidence add", channel="away")[0]
    room.slack.admin.set_channel("perf", is_ext_shared=True)
    assert "shared with another organisation" in room.say("/knob evidence add")[0]


def test_a_form_sent_while_the_store_is_away_says_so_and_stays_open(room: Room, store: Store) -> None:
    room.say("/knob evidence add")
    store.server.stop()
    assert room.fill().wait()
    assert "nothing was recorded" in room.view()["_errors"]["knob"]
    store.server.revive()
    assert room.fill().wait()
    room.work(drawing=False)
    assert len(room.records()) == 1


def test_a_form_that_comes_twice_is_one_record(room: Room) -> None:
    room.say("/knob evidence add")
    room.slack.faults.add(Fault("duplicate_envelope", "interactive"))
    assert room.fill().wait()
    room.work(drawing=False)
    assert len(room.records()) == 1
    assert len(room.told("ana")) == 1


def test_everything_that_is_recorded_is_told_newest_first_with_files_and_links(room: Room) -> None:
    assert room.say("/knob evidence TARGET_CTAS") == [
        "no evidence is recorded for TARGET_CTAS; evidence add opens a form for result files"
    ]
    summary = stories.record().summary
    assert summary is not None
    room.client.record_evidence(typed(summary, "typed.yaml", "a" * 64), by="U0BEN")
    room.now += 60
    room.say("/knob evidence add")
    room.fill().wait()
    room.work()
    room.now += 60
    (said,) = room.say("/knob evidence TARGET_CTAS")
    assert said.index("evidence ab-2, improves") < said.index("evidence ab-1, observed")
    assert said.startswith("evidence for TARGET_CTAS, newest first: 2 records")
    assert "n=1 per arm, no interval" in said
    assert "A: a1.json, a2.json, a3.json, a4.json · B: b1.json, " in said
    card = room.public()[0]
    link = f"https://sandbox.slack.example/archives/C0PERF/p{card['ts'].replace('.', '')}"
    assert f"<{link}|pictures>" in said
    assert len(room.public()) == 2


def test_pictures_of_a_record_that_nobody_has_shown_here_follow_the_question_once(room: Room) -> None:
    room.say("/knob evidence add")
    room.fill().wait()
    room.work(drawing=False)
    room.shown.clear()  # as if it had been recorded in a terminal
    (said,) = room.say("/knob evidence TARGET_CTAS")
    assert "pictures follow in this channel" in said
    card, pictures = room.public()
    assert len(pictures["files"]) == 2
    assert "|pictures>" in room.say("/knob evidence TARGET_CTAS")[0]
    room.slack.people.delete_message("perf", card["ts"])
    assert "pictures follow" in room.say("/knob evidence TARGET_CTAS")[0]
    assert len(room.public()) == 3  # the pictures of before, a card and pictures anew


def test_a_question_where_nothing_can_be_shown_is_answered_without_pictures(room: Room) -> None:
    room.say("/knob evidence add")
    room.fill().wait()
    room.work(drawing=False)
    room.slack.workspace.add_channel("away", ["U0ANA"], channel_id="C0AWAY", with_bot=False)
    (said,) = room.say("/knob evidence TARGET_CTAS", channel="away")
    assert "evidence ab-1, improves" in said
    assert "pictures" not in said
