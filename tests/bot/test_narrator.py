"""The thread is drawn once and in order, whatever Slack does; the card follows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from bot.narrator import Narrator
from bot.posting import Poster
from bot.slack import make_client
from bot.thread import line
from policies import events as e
from policies.errors import StoreUnavailable
from sandbox.slack import Fault, SlackSandbox
from tests.bot import stories
from tests.conftest import Store
from workers.client import Client
from workers.drawn import Drawn
from workers.lease import steady
from workers.ledger import Ledger
from workers.queue import Doorbell


class Desk:
    """A ledger, a narrator on the local Slack, and a clock that stands until it is moved."""

    def __init__(self, store: Store, slack: SlackSandbox) -> None:
        self.now = stories.T0
        self.slack = slack
        self.store = store
        self.ledger = Ledger(store.redis, self.clock)
        self.client = Client(self.ledger, Doorbell(store.redis), stories.fleet(), self.clock)
        self.drawn = Drawn(store.redis)
        self.rung: list[str] = []
        self.narrator = self.another()

    def clock(self) -> float:
        return self.now

    def another(self) -> Narrator:
        """A narrator of another process."""
        web = make_client(self.slack.bot_token, self.slack.base_url, timeout_s=3)
        return Narrator(self.client, self.drawn, Poster(web), self.clock, self.rung.append)

    def record(self, events: Sequence[e.Event], change_id: str = "C-142") -> None:
        for event in events:
            self.ledger.append(change_id, event, expect_version=len(self.ledger.entries(change_id)))
            self.now += 10

    def drawn_all(self, change_id: str = "C-142", *, rounds: int = 40) -> None:
        """Draw as often as the narrator asks for it."""
        self.narrator.draw(change_id)
        for _ in range(rounds):
            self.now += 120
            due = self.drawn.due(self.now)
            if not due:
                return
            self.narrator.draw(change_id)
        raise AssertionError("the drawing never came to rest")

    def messages(self) -> list[dict[str, Any]]:
        return [m for m in self.slack.people.transcript("C0PERF") if m["who"] == "clawback"]

    def wanted_lines(self, change_id: str = "C-142") -> list[str]:
        from bot.cards.story import Story

        story = Story.of(self.ledger.entries(change_id), tuple(self.client.evidence("TARGET_CTAS")), stories.fleet())
        return [str(said) for chapter in story.chapters() if (said := line(chapter)) is not None]

    def updates(self) -> int:
        """How often a card was edited so far."""
        return sum(call.method == "chat.update" for call in self.slack.people.calls)

    def lines(self) -> list[str]:
        """The lines as they stand in the thread, with Slack's escapes as sent."""
        return [m["text"] for m in self.messages() if m["thread_ts"] not in {None, m["ts"]}]


@pytest.fixture
def desk(store: Store, slack: SlackSandbox) -> Desk:
    return Desk(store, slack)


def test_a_change_has_one_card_and_one_line_an_event(desk: Desk) -> None:
    desk.record(stories.succeeded())
    desk.drawn_all()
    roots = [m for m in desk.messages() if m["thread_ts"] in {None, m["ts"]}]
    assert len(roots) == 1
    assert "done in 2 min 57 s" in roots[0]["text"]
    assert desk.lines() == desk.wanted_lines()
    entries = {entry.seq: entry for entry in desk.ledger.entries("C-142")}
    for message in desk.messages():
        told = message["metadata"]["event_payload"]
        assert message["metadata"]["event_type"] == "clawback_event"
        assert told == {"change": "C-142", "seq": told["seq"], "hash": entries[told["seq"]].hash}
    assert all(m["edited"] is None for m in desk.messages() if m["thread_ts"] not in {None, m["ts"]})


def test_drawing_again_posts_nothing(desk: Desk) -> None:
    desk.record(stories.succeeded())
    desk.drawn_all()
    before = len(desk.slack.people.calls)
    desk.narrator.draw("C-142")
    desk.another().draw("C-142")
    assert len(desk.slack.people.calls) == before


def test_the_card_is_edited_as_the_change_moves(desk: Desk) -> None:
    desk.record([stories.asked()])
    desk.drawn_all()
    assert desk.messages() == []
    desk.record([stories.planned()])
    desk.drawn_all()
    (card,) = [m for m in desk.messages() if m["thread_ts"] in {None, m["ts"]}]
    assert [b["type"] for b in card["blocks"]].count("actions") == 1
    desk.record([stories.confirmed(), stories.started(), *stories.step(0)])
    desk.drawn_all()
    (after,) = [m for m in desk.messages() if m["ts"] == card["ts"]]
    assert "step 2 of 4" in after["text"]
    (row,) = [b for b in after["blocks"] if b["type"] == "actions"]
    assert [button["text"]["text"] for button in row["elements"]] == ["Abort", "Details"]
    desk.record(stories.succeeded()[4 + len(stories.step(0)) :])
    desk.drawn_all()
    (ended,) = [m for m in desk.messages() if m["ts"] == card["ts"]]
    assert all(b["type"] != "actions" for b in ended["blocks"])


def test_a_running_change_edits_its_card_at_most_every_two_seconds(desk: Desk) -> None:
    desk.record([stories.asked(), stories.planned(), stories.confirmed(), stories.started()])
    desk.drawn_all()
    desk.now += 10
    before = desk.updates()
    for event in stories.step(0):
        desk.ledger.append("C-142", event, expect_version=len(desk.ledger.entries("C-142")))
        desk.narrator.draw("C-142")
    assert desk.updates() - before <= 1
    desk.drawn_all()
    (card,) = [m for m in desk.messages() if m["thread_ts"] in {None, m["ts"]}]
    assert "step 2 of 4" in card["text"]


@pytest.mark.parametrize(
    "fault",
    [
        Fault("reset_after_commit", "chat.postMessage", count=3),
        Fault("error_after_commit", "chat.postMessage", count=3),
        Fault("reset_before_commit", "chat.postMessage", count=3),
        Fault("server_error", "chat.postMessage", count=3),
        Fault("error", "chat.postMessage", count=3, error="internal_error"),
        Fault("ratelimited", "chat.postMessage", count=1, retry_after_s=1),
        Fault("reset_after_commit", "chat.update", count=2),
        Fault("server_error", "*", count=7),
        Fault("reset_after_commit", "*", count=6),
        Fault("error", "chat.postMessage", count=2, error="not_in_channel"),
    ],
    ids=lambda f: f"{f.kind}-{f.method}-{f.error}",
)
def test_no_line_is_lost_or_doubled_when_slack_fails(desk: Desk, fault: Fault) -> None:
    desk.record([stories.asked(), stories.planned()])
    desk.slack.faults.add(fault)
    desk.drawn_all()
    desk.record(stories.succeeded()[2:])
    desk.drawn_all()
    assert desk.lines() == desk.wanted_lines()
    roots = [m for m in desk.messages() if m["thread_ts"] in {None, m["ts"]}]
    assert len(roots) == 1
    assert "done in" in roots[0]["text"]
    assert desk.slack.faults.listed() == []


def test_each_line_may_be_posted_unclearly_and_still_stands_once(desk: Desk) -> None:
    desk.record([stories.asked(), stories.planned()])
    desk.drawn_all()
    desk.record(stories.succeeded()[2:])
    for _ in range(12):
        desk.slack.faults.add(Fault("reset_after_commit", "chat.postMessage", count=1))
        desk.narrator.draw("C-142")
        desk.now += 100
    desk.slack.faults.clear()
    desk.drawn_all()
    assert desk.lines() == desk.wanted_lines()


def test_pauses_grow_while_slack_is_away_and_work_is_drawn_in_order_after_it(desk: Desk) -> None:
    desk.record([stories.asked(), stories.planned()])
    desk.drawn_all()
    desk.slack.faults.add(Fault("server_error", "*", count=-1))
    desk.record(stories.succeeded()[2:])
    pauses = []
    for _ in range(9):
        desk.narrator.draw("C-142")
        assert desk.drawn.due(desk.now) == []
        waited = next(s for s in range(1, 200) if desk.drawn.due(desk.now + s))
        pauses.append(waited)
        desk.now += waited
    assert pauses == sorted(pauses)
    assert pauses[0] <= 2
    assert pauses[-1] == 60
    desk.slack.faults.clear()
    desk.drawn_all()
    assert desk.lines() == desk.wanted_lines()


def test_ten_minutes_without_slack_cost_no_line_and_the_work_does_not_notice(desk: Desk) -> None:
    desk.record([stories.asked(), stories.planned()])
    desk.drawn_all()
    port = int(desk.slack.base_url.rsplit(":", 1)[1].split("/")[0])
    desk.slack.stop()
    until, events = desk.now + 600, stories.succeeded()[2:]
    desk.narrator.draw("C-142")
    while desk.now < until:
        if events:
            desk.record([events.pop(0)])
            desk.narrator.draw("C-142")  # each event rings
        desk.now += 10
        for change_id in desk.drawn.due(desk.now):
            desk.narrator.draw(change_id)
    desk.record(events)
    assert desk.client.change("C-142").state == "succeeded"
    desk.slack.start(port=port)
    desk.drawn_all()
    assert desk.lines() == desk.wanted_lines()
    assert "done in" in desk.messages()[0]["text"]


@pytest.mark.parametrize("error", ["token_revoked", "invalid_auth", "account_inactive"])
def test_a_token_that_is_taken_away_and_given_back_costs_no_line(desk: Desk, error: str) -> None:
    desk.record([stories.asked(), stories.planned()])
    desk.drawn_all()
    desk.slack.workspace.app.token_error = error
    desk.record(stories.succeeded()[2:])
    for _ in range(5):
        desk.narrator.draw("C-142")
        desk.now += 60
    assert desk.lines() == desk.wanted_lines()[:1]
    desk.slack.workspace.app.token_error = None
    desk.drawn_all()
    assert desk.lines() == desk.wanted_lines()


@pytest.mark.parametrize("nth", [1, 2, 5])
def test_a_narrator_that_was_stopped_in_the_middle_of_a_post_takes_its_double_back(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    desk.record([stories.asked(), stories.planned()])
    desk.drawn_all()
    desk.record(stories.succeeded()[2:])
    real, posts = Poster.post, [0]

    def stopped(self: Poster, *arguments: Any, loud: bool) -> Any:
        posts[0] += 1
        if posts[0] == nth:
            desk.drawn._redis.delete("clawback:drawing:C-142")  # as it ends by itself
            desk.another().draw("C-142")
            monkeypatch.setattr("workers.drawn.steady", lambda: steady() + 31)
        return real(self, *arguments, loud=loud)

    monkeypatch.setattr(Poster, "post", stopped)
    desk.narrator.draw("C-142")
    monkeypatch.undo()
    desk.drawn_all()
    assert desk.lines() == desk.wanted_lines()


def test_a_narrator_that_died_after_posting_is_followed_by_one_that_reads_first(desk: Desk) -> None:
    desk.record([stories.asked(), stories.planned()])
    desk.drawn_all()
    before = desk.drawn.get("C-142")
    assert before is not None
    desk.record([stories.confirmed()])
    desk.narrator.draw("C-142")
    seq = desk.ledger.entries("C-142")[-1].seq
    # as if the process had ended between the post and the note of it
    desk.drawn.put("C-142", before.model_copy(update={"pending": seq}))
    desk.another().draw("C-142")
    assert desk.lines() == desk.wanted_lines()


def test_two_narrators_never_draw_the_same_change_at_once(desk: Desk) -> None:
    desk.record(stories.succeeded())
    with desk.drawn.lock("C-142") as held:
        assert held is not None
        desk.narrator.draw("C-142")
        assert desk.messages() == []
    assert desk.drawn.due(desk.now + 1) == ["C-142"]
    desk.drawn_all()
    assert desk.lines() == desk.wanted_lines()


def test_a_deleted_thread_goes_on_under_a_new_card_that_says_so(desk: Desk) -> None:
    desk.record([stories.asked(), stories.planned()])
    desk.drawn_all()
    (card,) = [m for m in desk.messages() if m["thread_ts"] in {None, m["ts"]}]
    desk.slack.people.delete_message("C0PERF", card["ts"])
    desk.record(stories.succeeded()[2:])
    desk.drawn_all()
    roots = [m for m in desk.messages() if m["thread_ts"] in {None, m["ts"]}]
    assert len(roots) == 1
    assert roots[0]["ts"] != card["ts"]
    assert "the earlier thread of C-142 is gone" in str(roots[0]["blocks"])
    new = [m["text"] for m in desk.messages() if m["thread_ts"] == roots[0]["ts"] and m["ts"] != roots[0]["ts"]]
    assert new == desk.wanted_lines()[1:]


def test_a_change_asked_in_a_thread_is_drawn_in_that_thread(desk: Desk) -> None:
    parent = desk.slack.people.say("ana", "perf", "it is slow again")
    desk.record([stories.asked(thread_ts=parent.ts), stories.planned()])
    desk.drawn_all()
    assert {m["thread_ts"] for m in desk.messages()} == {parent.ts}
    assert len(desk.messages()) == 2


def test_a_change_from_a_terminal_is_not_drawn(desk: Desk) -> None:
    desk.record([stories.asked(channel=""), stories.planned()])
    desk.drawn_all()
    assert desk.messages() == []


def test_those_who_decide_are_mentioned_in_the_thread_reminded_once_before_the_end_and_told_the_result(
    desk: Desk,
) -> None:
    desk.record([stories.asked(), stories.planned()])
    desk.narrator.draw("C-142")
    (shown,) = desk.lines()
    assert "<@U0BEN> please decide until" in shown
    assert desk.drawn.due(stories.T0 + 1499) == []
    desk.now = stories.T0 + 1501
    assert desk.drawn.due(desk.now) == ["C-142"]
    desk.narrator.draw("C-142")
    assert desk.rung == ["C-142"]
    for narrator in (desk.narrator, desk.another(), desk.narrator):
        narrator.draw("C-142")
    assert len(desk.lines()) == 2
    assert "<@U0BEN> this still waits for your decision, until" in desk.lines()[1]
    assert [entry.event.kind for entry in desk.ledger.entries("C-142")] == ["asked", "planned", "reminded"]
    desk.record(stories.succeeded()[2:])
    desk.drawn_all()
    assert "<@U0ANA> <@U0BEN>: done in 2 min 57 s" in desk.lines()[-1]
    assert desk.lines() == desk.wanted_lines()


def test_a_short_time_to_decide_is_reminded_of_at_its_half(desk: Desk) -> None:
    short = stories.planned().model_copy(update={"expires_at": stories.T0 + 10 + 400})
    desk.record([stories.asked(), short])
    desk.narrator.draw("C-142")
    assert desk.drawn.due(stories.T0 + 209) == []
    assert desk.drawn.due(stories.T0 + 210) == ["C-142"]


@pytest.mark.parametrize(
    "planned",
    [
        stories.planned(dry=True),
        stories.planned(approvals=0),
        stories.planned().model_copy(update={"expires_at": stories.T0}),
    ],
    ids=["dry", "no approval needed", "over already"],
)
def test_nobody_is_reminded_where_nothing_waits(desk: Desk, planned: e.Planned) -> None:
    desk.record([stories.asked(), planned])
    desk.narrator.draw("C-142")
    desk.now = stories.T0 + 1700
    desk.narrator.draw("C-142")
    assert [entry.event.kind for entry in desk.ledger.entries("C-142")] == ["asked", "planned"]
    assert desk.rung == []


@pytest.mark.parametrize("away", [False, True])
def test_a_group_named_by_handle_is_mentioned_by_its_id_or_named_plainly_when_it_is_not_known(
    desk: Desk, *, away: bool
) -> None:
    group = desk.slack.workspace.add_group("perf-oncall", ["U0BEN"])
    if away:
        desk.slack.faults.add(Fault("server_error", "usergroups.list", count=-1))
    by = ("<!subteam^perf-oncall>", "<!subteam^never-made>")
    desk.record([stories.asked(), stories.planned().model_copy(update={"mention": by})])
    desk.drawn_all()
    first = "@perf-oncall" if away else f"<!subteam^{group.id}>"
    (line,) = desk.lines()
    assert f"{first} @never-made please decide" in line
    assert ("<!subteam^perf" in line, "<!subteam^never" in line) == (False, False)


def test_the_card_says_who_gave_the_present_value(desk: Desk) -> None:
    desk.record(stories.succeeded(), "C-141")
    desk.record([stories.asked(), stories.planned()])
    desk.drawn_all()
    (card,) = [m for m in desk.messages() if m["thread_ts"] in {None, m["ts"]}]
    assert "since C-141, the last change here, it was altered by something else" in str(card["blocks"])


def test_a_lost_bell_is_found_by_the_sweep(desk: Desk) -> None:
    desk.record([stories.asked(), stories.planned()])
    desk.narrator.sweep()
    assert desk.rung == ["C-142"]
    desk.drawn_all()
    desk.rung.clear()
    desk.narrator.sweep()
    assert desk.rung == []


def test_hostile_words_reach_the_channel_harmless(desk: Desk) -> None:
    asked = stories.asked()
    intent = asked.intent.model_copy(update={"value": "<!channel>"})
    plan = stories.plan().model_copy(update={"value": "<!channel> @here"})
    desk.record([asked.model_copy(update={"intent": intent}), stories.planned(plan)])
    desk.drawn_all()
    said = "".join(str(m["text"]) + str(m["blocks"]) for m in desk.messages())
    assert "<!channel" not in said
    assert "@here" not in said


def test_a_store_that_is_gone_is_an_error_of_the_job(desk: Desk, store: Store) -> None:
    store.redis.set("clawback:drawn:C-142", "not json")
    desk.record([stories.asked(), stories.planned()])
    with pytest.raises(StoreUnavailable, match="cannot be read"):
        desk.narrator.draw("C-142")


def test_an_emergency_is_told_to_the_channel_beside_its_thread_and_once(desk: Desk) -> None:
    override = e.Override(
        by="oncall",
        ratify_by="approvers",
        within_s=600.0,
        because="5xx",
        mention=("<@U0BEN>",),
        approvals=1,
        role="approvers",
    )
    alone = stories.confirmed(actor=stories.ana()).model_copy(update={"override": override})
    urgent = stories.planned().model_copy(update={"emergency": override})
    desk.record([stories.asked(), urgent, alone, *stories.succeeded()[3:], e.RatifyReminded()])
    desk.record([e.Lapsed(undo="C-143", back=stories.asked().intent)])
    desk.drawn_all()
    desk.another().draw("C-142")
    assert desk.lines() == desk.wanted_lines()
    loud = [m.text for m in desk.slack.workspace.messages if m.broadcast]
    assert [bool(re.search(text, line)) for text, line in zip(LOUD, loud, strict=True)] == [True] * 3
    assert all("<@U0BEN>" in line for line in loud)


LOUD = (
    r"confirmed co-restart alone and overrides",
    r"nobody has ratified it; that ends",
    r"C-143 was asked for, to take it back",
)
