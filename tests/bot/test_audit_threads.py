"""The thread is compared with the ledger: what somebody edited, deleted, added or moved is named, and nothing else."""

from __future__ import annotations

import copy
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from bot.asides import Asides
from bot.audit.message import read
from bot.audit.reading import Slack
from bot.audit.threads import Compared, Threads
from bot.cards.kit import Card
from bot.cards.shown import digest
from bot.cli import main
from bot.exhibits import Exhibit, Exhibits
from bot.posting import EVENT_TYPE, Poster
from bot.slack import SlackRefused, make_client
from bot.uploading import Uploader
from policies import events as e
from policies.intents import Where
from policies.suspicion import Suspicion
from sandbox.slack import Fault, SlackSandbox
from tests.bot import stories
from tests.bot.test_changed import HAND
from tests.bot.test_narrator import Desk
from tests.conftest import Store
from tests.shared import shared
from workers.archive.follow import catch_up
from workers.archive.writer import Archive
from workers.audit import Copies
from workers.drawn import Drawn, Pointer
from workers.live import EmbeddedStore
from workers.rebuild import rebuild
from workers.store import connect

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def drawn() -> Iterator[tuple[Desk, Callable[[], None]]]:
    """A thread that was drawn once, and how to bring everything back to what it was then."""
    with (
        tempfile.TemporaryDirectory(prefix="cb-") as folder,
        EmbeddedStore(Path(folder) / "data") as server,
        SlackSandbox(reference=shared("slack")) as slack,
    ):
        for name in ("ana", "ben", "gus"):
            slack.workspace.add_user(name, user_id=f"U0{name.upper()}")
        slack.workspace.add_channel("perf", ("U0ANA", "U0BEN", "U0GUS"), channel_id="C0PERF")
        client = connect(server.url)
        desk = Desk(Store(server.url, client, server), slack)
        desk.record(begun())
        desk.drawn_all()
        keys = [(key, client.dump(key) or b"") for key in client.keys("*")]
        messages, now = copy.deepcopy(slack.workspace.messages), desk.now

        def again() -> None:
            client.flushall()
            for key, value in keys:
                client.restore(key, 0, value)
            slack.workspace.messages[:] = copy.deepcopy(messages)
            slack.faults.clear()
            desk.now = now

        yield desk, again
        client.close()
        assert slack.workspace.violations == []


@pytest.fixture
def desk(drawn: tuple[Desk, Callable[[], None]]) -> Desk:
    drawn[1]()
    return drawn[0]


def begun() -> list[e.Event]:
    """As far as the first healthy service: every kind of line, and quickly drawn."""
    return [stories.asked(), stories.planned(), stories.confirmed(), stories.started(), *stories.step(0)]


def compare(desk: Desk, *only: str) -> Compared:
    web = make_client(desk.slack.bot_token, desk.slack.base_url, timeout_s=3)
    copies = Copies(desk.ledger, Drawn(desk.ledger.redis))
    return Threads(copies, Slack(web), stories.fleet(), lambda _: None).compare(only)


def codes(compared: Compared) -> list[str]:
    return [one.code for one in compared.problems]


def card(desk: Desk) -> dict[str, Any]:
    return next(m for m in desk.messages() if m["thread_ts"] in {None, m["ts"]})


def lines(desk: Desk) -> list[dict[str, Any]]:
    return [m for m in desk.messages() if m["thread_ts"] not in {None, m["ts"]}]


def healthy(desk: Desk) -> dict[str, Any]:
    return next(m for m in lines(desk) if "prefill healthy" in m["text"])


def forge(desk: Desk, text: str, claim: dict[str, Any] | None, *, thread: bool = True, bot: str | None = None) -> None:
    """Say something with the bot's token and behind its back; `bot` is another app."""
    app = desk.slack.workspace.app
    metadata = {"event_type": EVENT_TYPE, "event_payload": claim} if claim else None
    where = card(desk)["ts"] if thread else None
    user = app.bot_user if bot is None else "U0GUS"
    desk.slack.workspace.post("C0PERF", user, text, bot_id=bot or app.bot_id, metadata=metadata, thread_ts=where)


def test_a_thread_that_nobody_touched_agrees(desk: Desk) -> None:
    compared = compare(desk)
    assert (compared.problems, compared.notes) == ((), ())
    assert (compared.threads, compared.messages) == (1, len(lines(desk)) + 1)


def test_people_may_talk_in_a_thread_and_beside_it(desk: Desk) -> None:
    desk.slack.people.say("ana", "perf", "thank you", thread_ts=card(desk)["ts"])
    desk.slack.people.say("ben", "perf", "that was quick")
    forge(desk, "build 77 is green", None, bot="B0OTHER")
    assert compare(desk).problems == ()


def test_an_edited_line_is_named_with_both_texts(desk: Desk) -> None:
    line = healthy(desk)
    text = line["text"].replace("68.2 s", "9.2 s")
    desk.slack.people.edit_message_behind_the_bot("C0PERF", line["ts"], text, by="U0BEN")
    (problem,) = compare(desk).problems
    assert problem.code == "thread.edited-line"
    assert problem.values["change"] == "C-142"
    assert problem.values["seq"] == line["metadata"]["event_payload"]["seq"]
    assert problem.values["by"] == "U0BEN"
    assert "9.2 s" in str(problem.values["found"])
    assert "68.2 s" in str(problem.values["expected"])


def test_blocks_that_say_more_than_the_line_are_an_edit(desk: Desk) -> None:
    found = next(m for m in desk.slack.workspace.messages if m.ts == healthy(desk)["ts"])
    found.blocks = [{"type": "section", "text": {"type": "mrkdwn", "text": "all is well"}}]
    assert codes(compare(desk)) == ["thread.edited-line"]
    leaf = {"type": "text", "text": "prefill healthy"}
    found.blocks = [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [leaf]}]}]
    assert codes(compare(desk)) == []
    leaf["text"] = "prefill never came back"
    assert codes(compare(desk)) == ["thread.edited-line"]


def test_a_line_that_was_edited_and_put_back_is_a_note(desk: Desk) -> None:
    line = healthy(desk)
    for text in ("nothing to see here", line["text"]):
        desk.slack.people.edit_message_behind_the_bot("C0PERF", line["ts"], text)
    compared = compare(desk)
    assert compared.problems == ()
    assert [one.code for one in compared.notes] == ["thread.edited-back"]


def test_a_deleted_line_is_named_with_what_it_said(desk: Desk) -> None:
    line = healthy(desk)
    desk.slack.people.delete_message("C0PERF", line["ts"])
    (problem,) = compare(desk).problems
    assert problem.code == "thread.deleted-line"
    assert problem.values["seq"] == line["metadata"]["event_payload"]["seq"]
    assert "prefill healthy after 68.2 s" in str(problem.values["text"])


@pytest.mark.parametrize(
    ("claim", "code"),
    [
        (None, "thread.added-message"),
        ({"change": "C-142", "seq": 999, "hash": "a" * 64}, "thread.unknown-entry"),
        ({"change": "C-142", "seq": 5, "hash": "a" * 64}, "thread.unknown-entry"),
        ({"change": "C-7", "seq": "nine", "hash": None}, "thread.unknown-entry"),
    ],
    ids=["no entry named", "no such entry", "wrong hash", "nonsense"],
)
@pytest.mark.parametrize("thread", [True, False])
def test_a_forged_line_is_named(desk: Desk, claim: dict[str, Any] | None, code: str, *, thread: bool) -> None:
    forge(desk, "decode healthy after 1 s", claim, thread=thread)
    compared = compare(desk)
    assert codes(compared) == [code]
    assert compared.problems[0].values["text"] == "decode healthy after 1 s"


def test_the_metadata_of_a_line_do_not_serve_a_second_time(desk: Desk) -> None:
    line = healthy(desk)
    forge(desk, line["text"], line["metadata"]["event_payload"])
    assert codes(compare(desk)) == ["thread.doubled"]


def test_a_line_of_a_thread_does_not_belong_into_the_channel(desk: Desk) -> None:
    line = healthy(desk)
    forge(desk, line["text"], line["metadata"]["event_payload"], thread=False)
    assert codes(compare(desk)) == ["thread.moved-line"]


def test_an_entry_that_has_no_line_is_drawn_by_nobody(desk: Desk) -> None:
    entry = next(x for x in desk.ledger.entries("C-142") if x.event.kind == "step_started")
    forge(desk, "step done", {"change": "C-142", "seq": entry.seq, "hash": entry.hash})
    assert codes(compare(desk)) == ["thread.added-message"]


def test_another_app_under_the_name_of_the_bot_is_named(desk: Desk) -> None:
    payload = healthy(desk)["metadata"]["event_payload"]
    forge(desk, "prefill is fine", payload, bot="B0OTHER")
    assert codes(compare(desk)) == ["thread.added-message"]


def test_a_line_that_was_posted_again_behind_later_ones_is_out_of_place(desk: Desk) -> None:
    line = lines(desk)[0]
    desk.slack.people.delete_message("C0PERF", line["ts"])
    forge(desk, line["text"], line["metadata"]["event_payload"])
    assert codes(compare(desk)) == ["thread.moved-line"]


def test_a_line_in_the_thread_of_another_change_is_out_of_place(desk: Desk) -> None:
    desk.record(begun(), "C-143")
    desk.drawn_all("C-143")
    assert compare(desk).problems == ()
    forge(desk, "started", lines(desk)[-1]["metadata"]["event_payload"])
    assert codes(compare(desk)) == ["thread.moved-line"]


def test_a_record_that_is_shown_in_the_thread_of_a_change_is_no_line_of_it(desk: Desk) -> None:
    record = stories.record()
    entry = desk.ledger.append(record.id, e.EvidenceRecorded(record=record), expect_version=0)
    forge(desk, "evidence ab-17", {"change": record.id, "seq": entry.seq, "hash": entry.hash})
    forge(desk, "evidence ab-17", {"change": record.id, "seq": entry.seq, "hash": entry.hash}, thread=False)
    assert codes(compare(desk)) == []
    forge(desk, "evidence ab-17", {"change": record.id, "seq": entry.seq, "hash": "f" * 64})
    assert codes(compare(desk)) == ["thread.unknown-entry"]


@pytest.mark.parametrize("what", ["text and blocks", "one block", "a button"])
def test_an_edited_card_is_named(desk: Desk, what: str) -> None:
    found = next(m for m in desk.slack.workspace.messages if m.ts == card(desk)["ts"])
    if what == "text and blocks":
        desk.slack.people.edit_message_behind_the_bot("C0PERF", found.ts, "everything was refused")
    elif what == "one block":
        section = next(block for block in found.blocks if block["type"] == "section")
        section["text"]["text"] = section["text"]["text"].replace("512", "1024")
    else:
        found.blocks.append({"type": "actions", "elements": [{"type": "button", "action_id": "x"}]})
    assert codes(compare(desk)) == ["thread.edited-card"]


def suspicion() -> Suspicion:
    return Suspicion(
        id="su-142",
        change="C-142",
        knob="TARGET_CTAS",
        value="512",
        was={"decode@gpu1": "512"},
        now={"decode@gpu1": None},
        reason="it hung",
        owner="U0ANA",
        at=stories.T0,
        review_at=stories.T0 + 86_400,
        review_s=86_400,
    )


def reverted() -> list[e.Event]:
    """The end of a revert on suspicion."""
    end = e.Succeeded(
        knob="TARGET_CTAS",
        order="co-restart",
        word="revert",
        was={"decode@gpu1": "512"},
        now={"decode@gpu1": None},
        took_s=160.0,
        suspicion=suspicion(),
    )
    return [e.Proved(proofs={}, findings=()), end]


def test_a_line_that_tells_of_the_change_before_is_drawn_from_it(desk: Desk) -> None:
    desk.record(reverted())
    desk.record(stories.succeeded(), "C-143")
    desk.drawn_all()
    desk.drawn_all("C-143")
    assert "su-142" in lines(desk)[-1]["text"]
    assert (compare(desk).problems, compare(desk).notes) == ((), ())


def test_a_reminder_beside_a_change_is_compared_too(desk: Desk) -> None:
    web = make_client(desk.slack.bot_token, desk.slack.base_url, timeout_s=3)
    asides = Asides(desk.client, desk.drawn, Poster(web), desk.clock, desk.rung.append)
    desk.record(reverted())
    desk.drawn_all()
    desk.now = stories.T0 + 100_000
    assert desk.client.remind_of_suspicions() == ["su-142"]
    assert compare(desk).problems == ()
    asides.draw("su-142")
    reminder = lines(desk)[-1]
    assert reminder["metadata"]["event_payload"]["change"] == "su-142"
    assert (compare(desk).problems, compare(desk).notes) == ((), ())
    desk.slack.people.edit_message_behind_the_bot("C0PERF", reminder["ts"], "all is forgotten")
    assert codes(compare(desk)) == ["thread.edited-line"]
    desk.slack.people.delete_message("C0PERF", reminder["ts"])
    (gone,) = compare(desk).problems
    assert (gone.code, gone.values["change"]) == ("thread.deleted-line", "su-142")


def test_a_record_that_is_shown_in_a_thread_is_compared_with_what_was_posted(desk: Desk) -> None:
    web = make_client(desk.slack.bot_token, desk.slack.base_url, timeout_s=3)
    exhibits = Exhibits(desk.client, desk.drawn, Poster(web), Uploader(web), desk.clock)
    desk.record([e.EvidenceRecorded(record=stories.record())], "ab-17")
    place = Exhibit("ab-17", "C0PERF", card(desk)["ts"])
    exhibits.draw(place.name)
    exhibits.draw(Exhibit("ab-17", "C0PERF").name)
    shown = [m for m in desk.messages() if m["metadata"] and m["metadata"]["event_payload"]["change"] == "ab-17"]
    assert len(shown) == 2
    assert (compare(desk).problems, compare(desk).notes) == ((), ())
    for message in shown:
        found = next(m for m in desk.slack.workspace.messages if m.ts == message["ts"])
        before, found.text = found.text, "it was never measured"
        assert codes(compare(desk)) == ["thread.edited-card"]
        found.text = before
    forge(desk, "ab-17: +99 %", shown[0]["metadata"]["event_payload"])
    assert codes(compare(desk)) == ["thread.added-message"]
    desk.ledger.redis.delete(f"clawback:drawn:{place.name}", "clawback:drawn:ab-17_C0PERF")
    forgotten = compare(desk)
    assert (forgotten.problems, {one.code for one in forgotten.notes}) == ((), {"thread.unheld"})


def test_what_was_done_outside_of_changes_is_compared_in_its_channel(desk: Desk) -> None:
    web = make_client(desk.slack.bot_token, desk.slack.base_url, timeout_s=3)
    desk.client.fleet = stories.fleet().model_copy(update={"channel": "C0PERF"})
    asides = Asides(desk.client, desk.drawn, Poster(web), desk.clock, desk.rung.append)
    desk.record([HAND], "out-1")
    asides.draw("out-1")
    said = next(m for m in desk.messages() if m["metadata"]["event_payload"]["change"] == "out-1")
    assert (compare(desk).problems, compare(desk).notes) == ((), ())
    desk.slack.people.edit_message_behind_the_bot("C0PERF", said["ts"], "nothing happened")
    assert codes(compare(desk)) == ["thread.edited-card"]
    desk.slack.people.delete_message("C0PERF", said["ts"])
    assert codes(compare(desk)) == ["thread.gone"]


def test_a_lock_and_its_end_are_compared_below_each_other(desk: Desk) -> None:
    web = make_client(desk.slack.bot_token, desk.slack.base_url, timeout_s=3)
    asides = Asides(desk.client, desk.drawn, Poster(web), desk.clock, desk.rung.append)
    where = Where(channel="C0PERF")
    put_on = e.Locked(scope="decode", instances=("decode@gpu1",), actor=stories.ana(), because="profiling", where=where)
    desk.record([put_on], "lk-1")
    asides.draw("lk-1")
    desk.ledger.append("lk-1", e.Unlocked(actor=stories.ben()), expect_version=1)
    asides.draw("lk-1")
    first, last = (m for m in desk.messages() if m["metadata"]["event_payload"]["change"] == "lk-1")
    assert last["thread_ts"] == first["ts"]
    assert (compare(desk).problems, compare(desk).notes) == ((), ())
    desk.slack.people.edit_message_behind_the_bot("C0PERF", last["ts"], "still locked")
    assert codes(compare(desk)) == ["thread.edited-line"]


def test_after_a_rebuild_a_reminder_is_not_said_twice(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.narrator.CARD_WITHIN_S", 1e9)
    web = make_client(desk.slack.bot_token, desk.slack.base_url, timeout_s=3)
    asides = Asides(desk.client, desk.drawn, Poster(web), desk.clock, desk.rung.append)
    desk.record(reverted())
    desk.drawn_all()
    desk.now = stories.T0 + 100_000
    desk.client.remind_of_suspicions()
    asides.draw("su-142")
    before, client = [m["text"] for m in desk.messages()], desk.ledger.redis
    with Archive(tmp_path) as files:
        catch_up(files, client)
    client.flushall()
    rebuild(client, tmp_path, from_archive=False)
    desk.drawn_all()
    asides.draw("su-142")
    assert [m["text"] for m in desk.messages()] == before
    assert compare(desk).problems == ()


def test_a_deleted_card_and_a_deleted_thread_are_told_apart(desk: Desk) -> None:
    line = lines(desk)[0]
    desk.slack.people.delete_message("C0PERF", card(desk)["ts"])
    assert codes(compare(desk)) == ["thread.gone"]
    parent = desk.slack.people.say("ana", "perf", "it is slow again")
    desk.record([stories.asked(thread_ts=parent.ts), stories.planned()], "C-143")
    desk.drawn_all("C-143")
    other = next(m for m in desk.messages() if m["thread_ts"] == parent.ts)
    desk.slack.people.delete_message("C0PERF", other["ts"])
    assert sorted(codes(compare(desk))) == ["thread.deleted-card", "thread.gone"]
    assert line["metadata"] is not None


def test_a_line_that_is_still_to_be_drawn_is_no_problem(desk: Desk) -> None:
    desk.record([stories.asked(), stories.planned()], "C-143")
    desk.narrator.draw("C-143")
    desk.record([stories.confirmed(), stories.started()], "C-143")
    compared = compare(desk)
    assert compared.problems == ()
    (note,) = compared.notes
    assert (note.code, note.values["change"], note.values["n"]) == ("thread.pending", "C-143", 2)
    desk.record([stories.asked(), stories.planned()], "C-144")
    assert {one.values["change"] for one in compare(desk).notes} == {"C-143", "C-144"}


def test_a_card_as_it_was_last_drawn_is_right_while_later_entries_wait(desk: Desk) -> None:
    desk.record([stories.asked(), stories.planned()], "C-143")
    desk.drawn_all("C-143")
    desk.record([stories.confirmed(), stories.started(), *stories.step(0)], "C-143")
    assert compare(desk).problems == ()
    desk.drawn_all("C-143")
    assert compare(desk).problems == ()


def test_a_thread_whose_place_is_forgotten_is_found_by_its_card(desk: Desk) -> None:
    desk.ledger.redis.delete("clawback:drawn:C-142")
    assert compare(desk).problems == ()
    line = healthy(desk)
    desk.slack.people.edit_message_behind_the_bot("C0PERF", line["ts"], "prefill healthy at once")
    assert codes(compare(desk)) == ["thread.edited-line"]


def test_after_a_rebuild_the_narrator_looks_where_its_threads_are_and_says_nothing_twice(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.narrator.CARD_WITHIN_S", 1e9)  # the desk's clock and the workspace's are years apart
    client, before = desk.ledger.redis, [m["text"] for m in desk.messages()]
    with Archive(tmp_path) as files:
        catch_up(files, client)
    client.flushall()
    assert all(one.effect != "refuse" for one in rebuild(client, tmp_path, from_archive=False))
    assert compare(desk).problems == ()
    desk.drawn_all()
    assert [m["text"] for m in desk.messages()] == before
    desk.record(stories.step(1))
    desk.drawn_all()
    assert [m["text"] for m in lines(desk)][: len(before) - 1] == before[1:]
    assert len(lines(desk)) == len(before)
    assert compare(desk).problems == ()


def test_a_thread_that_is_gone_when_it_is_looked_up_is_begun_anew(desk: Desk, tmp_path: Path) -> None:
    desk.drawn.put("C-142", Pointer(channel="C0PERF", unsure_to=9))
    for message in desk.messages():
        desk.slack.people.delete_message("C0PERF", message["ts"])
    desk.drawn_all()
    assert len(lines(desk)) == 5
    parent = desk.slack.people.say("ana", "perf", "look at this")
    desk.record([stories.asked(thread_ts=parent.ts), stories.planned()], "C-143")
    desk.drawn.put("C-143", Pointer(channel="C0PERF", thread_ts=parent.ts, unsure_to=99))
    desk.slack.people.delete_message("C0PERF", parent.ts)
    desk.drawn_all("C-143")
    assert desk.drawn.get("C-143") is not None
    assert [m["text"] for m in desk.messages() if m["metadata"]["event_payload"]["change"] == "C-143"]


def test_a_line_in_the_words_of_an_earlier_version_is_a_note_unless_somebody_edited_it(desk: Desk) -> None:
    seq = healthy(desk)["metadata"]["event_payload"]["seq"]
    found = next(m for m in desk.slack.workspace.messages if m.ts == healthy(desk)["ts"])
    found.text = "prefill is well after 68.2 s"
    assert codes(compare(desk)) == ["thread.edited-line"]
    desk.drawn.said("C-142", seq, digest(Card(found.text)))
    compared = compare(desk)
    assert compared.problems == ()
    assert [one.code for one in compared.notes] == ["thread.other-words"]
    found.edited = {"user": "U0BEN", "ts": "1.0"}
    assert codes(compare(desk)) == ["thread.edited-line"]


def test_a_message_with_the_links_that_slack_makes_is_not_edited(desk: Desk) -> None:
    found = next(m for m in desk.slack.workspace.messages if m.ts == card(desk)["ts"])
    for block in found.blocks:
        block["block_id"] = "x"
        if block["type"] == "section":
            block["text"]["verbatim"] = False
    assert compare(desk).problems == ()


def test_a_channel_or_thread_that_cannot_be_read_is_a_problem(desk: Desk) -> None:
    desk.slack.faults.add(Fault("error", "conversations.replies", count=-1, error="not_in_channel"))
    assert codes(compare(desk)) == ["thread.unreadable"]
    desk.slack.faults.add(Fault("error", "conversations.history", count=-1, error="missing_scope"))
    assert codes(compare(desk)) == ["thread.unreadable-channel", "thread.unreadable"]
    desk.slack.faults.clear()
    desk.slack.faults.add(Fault("ratelimited", "conversations.replies", count=2, retry_after_s=1))
    assert codes(compare(desk)) == []
    desk.slack.faults.add(Fault("error", "auth.test", count=-1, error="invalid_auth"))
    with pytest.raises(SlackRefused, match="invalid_auth"):
        compare(desk)


def test_one_change_of_many_is_compared_alone(desk: Desk) -> None:
    desk.record(begun(), "C-143")
    desk.drawn_all("C-143")
    desk.slack.people.delete_message("C0PERF", healthy(desk)["ts"])
    assert codes(compare(desk, "C-143")) == []
    assert codes(compare(desk, "C-142")) == ["thread.deleted-line"]


def test_a_message_that_is_no_message_is_read_as_nothing() -> None:
    found = read({"metadata": {"event_type": EVENT_TYPE, "event_payload": "nonsense"}, "blocks": None, "edited": 3})
    assert found.claim is not None
    assert (found.claim.change, found.claim.seq, found.text, found.edited_by) == ("?", 0, "", None)


def test_the_command_answers_in_words_and_in_json(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*words: str) -> Result:
        return CliRunner().invoke(main, ["audit", "verify", "--thread", *words])

    for name in (name for name in os.environ if name.startswith(("CLAWBACK", "SLACK", "REDIS"))):
        monkeypatch.delenv(name)
    monkeypatch.setenv("REDIS_URL", desk.store.url)
    assert (run().exit_code, "SLACK_BOT_TOKEN is not set" in run().stderr) == (2, True)
    monkeypatch.setenv("SLACK_BOT_TOKEN", desk.slack.bot_token)
    monkeypatch.setenv("SLACK_API_URL", desk.slack.base_url)
    monkeypatch.setenv("CLAWBACK_FLEET", str(ROOT / "fleet.example.yaml"))
    line = healthy(desk)
    desk.slack.people.edit_message_behind_the_bot("C0PERF", line["ts"], "all `is` well <https://x.invalid|here>")
    said, as_json = run(), run("--json")
    assert (said.exit_code, as_json.exit_code) == (1, 1)
    seq = line["metadata"]["event_payload"]["seq"]
    assert f"the line of entry {seq} in the thread of C-142 was edited" in said.stdout
    assert "it says `all 'is' well <https://x.invalid|here>`, the ledger says `" in said.stdout
    document = json.loads(as_json.stdout)
    assert (document["ok"], [one["code"] for one in document["problems"]]) == (False, ["thread.edited-line"])
    desk.slack.people.edit_message_behind_the_bot("C0PERF", line["ts"], line["text"])
    again = run()
    assert again.exit_code == 0
    assert "the threads agree with the ledger" in again.stdout
    assert desk.slack.bot_token not in said.output + as_json.output + again.output


def test_a_line_that_the_channel_was_told_too_is_a_line_of_its_thread(desk: Desk) -> None:
    override = e.Override(by="oncall", ratify_by="approvers", within_s=600.0, because="5xx", freezes=("weekend",))
    alone = stories.confirmed(actor=stories.ana()).model_copy(update={"override": override})
    desk.record([stories.asked(), stories.planned(), alone, stories.started()], "C-143")
    desk.drawn_all("C-143")
    (loud,) = [m for m in desk.slack.workspace.messages if m.broadcast]
    assert "overrides the freeze" in loud.text
    assert compare(desk).problems == ()
    loud.text = loud.text.replace("weekend", "night")
    assert codes(compare(desk, "C-143")) == ["thread.edited-line"]
