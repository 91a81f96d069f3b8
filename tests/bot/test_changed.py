"""What changed is told with who and when, what was found outside of changes, and what nobody watches."""

from __future__ import annotations

import pytest

from bot.asides import Asides
from bot.grammar import parse
from bot.names import Names
from bot.permalinks import Permalinks
from bot.posting import Poster
from bot.slack import make_client
from policies import events as e
from policies.intents import History, Log, WhyCause, WhyKnob
from sandbox.slack import SlackSandbox
from tests.bot import stories
from tests.bot.suspected import record, restored, reverted
from tests.bot.test_hearing import Room
from tests.conftest import Store
from workers.drawn import Drawn, Pointer

T0 = stories.T0
HAND = e.OutsideSeen(
    instance="decode@gpu1",
    since=T0 - 60,
    seen_at=T0,
    found=(
        e.Difference(what="edited", name="/etc/sgl/<!channel>.env", was="a" * 64, now="b" * 64),
        e.Difference(what="restarted", was="pid 10", now="pid 11"),
    ),
)


@pytest.fixture
def room(store: Store, slack: SlackSandbox) -> Room:
    room = Room(store, slack)
    room.ledger.append("ab-17", e.EvidenceRecorded(record=stories.record()), expect_version=0)
    record(room.ledger, "C-7", reverted(T0))
    room.ledger.append("out-1", HAND, expect_version=0)
    room.now = T0 + 60
    return room


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("/deploy log", None), ("/deploy log since 3d", 259_200.0), ("/deploy LOG SINCE 90S", 90.0)],
)
def test_a_time_is_read(text: str, seconds: float | None) -> None:
    assert parse(text).command == Log(since_s=seconds)


@pytest.mark.parametrize("text", ["/deploy log since", "/deploy log 2h", "/deploy log since yesterday", "/knob log"])
def test_what_is_no_time_is_refused_with_what_to_write(text: str) -> None:
    error = parse(text).error
    assert error is not None
    assert "2h" in error.hint or "/deploy log" in error.hint or "usage" in error.hint


def test_the_log_has_changes_what_was_done_outside_and_what_is_not_covered(room: Room) -> None:
    said = room.command("/deploy log since 2h")
    assert "what changed in the last 2 h 00 min" in said
    assert 'C-7 succeeded: /knob revert TARGET_CTAS because "multi-round hang", asked by <@U0ANA>' in said
    assert "approved by <@U0BEN>" in said
    assert "outside any change, on decode@gpu1: /etc/sgl/&lt;!channel&gt;.env was edited" in said
    assert "the process was restarted (pid 10 → pid 11)" in said
    assert "not looked at yet: prefill@gpu1, decode@gpu1, router@gpu1" in said
    assert "not covered" in said
    assert "proxies, load balancers" in said


def test_the_changes_of_a_ticket_are_listed_whatever_their_age_and_however_it_is_spelled(room: Room) -> None:
    asked = room.ledger.entries("C-7")[0].event
    assert isinstance(asked, e.Asked)
    for name, ticket in (("C-8", "INC-12"), ("C-9", "inc-12"), ("C-10", "INC-1"), ("C-11", None)):
        intent = asked.intent.model_copy(update={"ticket": ticket})
        room.ledger.append(name, asked.model_copy(update={"intent": intent}), expect_version=0)
    room.now = T0 + 300 * 86_400
    said = room.command("/deploy log ticket INC-12")
    assert "2 changes for ticket INC-12" in said
    assert said.index("C-8") < said.index("C-9")
    assert "· ticket inc-12" in said
    assert "C-10" not in said
    assert "C-7" not in said
    assert "no change names the ticket INC-12" in room.command("/deploy log since 1h ticket INC-12")
    assert "ticket INC-12" in room.command("/knob history TARGET_CTAS")
    assert "ticket INC-12" in room.command("/knob status C-8")
    assert '"ticket":"INC-12"' in "".join(room.ledger.export())


def test_a_time_in_which_nothing_happened_says_so_and_still_what_is_not_covered(room: Room) -> None:
    room.now = T0 + 10 * 86_400
    said = room.command("/deploy log since 1h")
    assert "no change was asked for" in said
    assert "C-7" not in said
    assert "not covered" in said


def test_the_history_of_a_knob_is_told_in_order_with_its_suspicion(room: Room) -> None:
    said = room.command("/knob history TARGET_CTAS")
    assert said.index("evidence ab-17") < said.index("C-7 succeeded") < said.index("outside any change")
    assert "left suspicion su-7, which is open" in said
    assert "decode@gpu1: 512 → unset" in said
    record(room.ledger, "C-8", restored())
    said = room.command("/knob history TARGET_CTAS")
    assert "left suspicion su-7, which is reclaimed" in said


def test_where_a_value_comes_from_is_told_with_people_evidence_and_suspicion(room: Room) -> None:
    said = room.command("/knob why TARGET_CTAS")
    assert "where the value of TARGET_CTAS comes from" in said
    assert 'by C-7: /knob revert TARGET_CTAS because "multi-round hang", asked by <@U0ANA>' in said
    assert "approved by <@U0BEN>" in said
    assert "decode@gpu1: 512 → unset" in said
    assert "ab-17" in said
    assert "+12.8 % C64" in said
    assert "suspicion su-7 is open: cause: not established" in said
    record(room.ledger, "C-8", restored())
    said = room.command("/knob why TARGET_CTAS")
    assert "by C-8" in said
    assert "before that · since" in said
    assert "su-7 is closed: C-8 gave the value back" in said


def test_a_knob_that_no_change_touched_says_so(store: Store, slack: SlackSandbox) -> None:
    room = Room(store, slack)
    assert "no change brought TARGET_CTAS its value" in room.command("/knob why TARGET_CTAS")


def test_why_is_about_a_knob_behind_knob_and_about_a_change_behind_cause() -> None:
    names = Names.of(stories.fleet())
    assert parse("/knob why TARGET_CTAS", names=names).command == WhyKnob(knob="TARGET_CTAS")
    assert parse("<@UBOT> why TARGET_CTAS", names=names).command == WhyKnob(knob="TARGET_CTAS")
    assert parse("<@UBOT> why decode", names=names).command == WhyCause(about="decode")
    assert parse("/cause why C-7", names=names).command == WhyCause(about="C-7")
    error = parse("/knob why C-7", names=names).error
    assert error is not None
    assert error.code == "unknown-knob"


def test_a_knob_without_history_says_so(store: Store, slack: SlackSandbox) -> None:
    assert "nothing is recorded of TARGET_CTAS yet" in Room(store, slack).command("/knob history TARGET_CTAS")
    assert parse("/knob history TARGET_CTAS").command == History(knob="TARGET_CTAS")


def test_a_change_that_is_drawn_is_told_with_its_address(room: Room, slack: SlackSandbox) -> None:
    web = make_client(slack.bot_token, slack.base_url, timeout_s=3)
    drawn = Drawn(room.ledger.redis)
    links = Permalinks(web, drawn)
    assert links.of("C-7") is None
    posted = str(web.chat_postMessage(channel="C0PERF", text="the card of C-7")["ts"])
    drawn.put("C-7", Pointer(channel="C0PERF", thread_ts=posted, card_ts=posted))
    address = links.of("C-7")
    assert address is not None
    assert address.endswith(f"/archives/C0PERF/p{posted.replace('.', '')}")
    drawn.put("C-8", Pointer(channel="C0PERF", card_ts="1764600000.000001"))
    assert links.of("C-8") is None  # the message is not there: no address, and no error


def test_what_was_found_outside_is_posted_once_in_the_channel_of_the_fleet(room: Room, slack: SlackSandbox) -> None:
    rung: list[str] = []

    def asides() -> Asides:
        web = make_client(slack.bot_token, slack.base_url, timeout_s=3)
        return Asides(room.client, Drawn(room.ledger.redis), Poster(web), lambda: room.now, rung.append)

    asides().sweep()
    assert "out-1" not in rung  # the fleet file names no channel
    room.client.fleet = room.client.fleet.model_copy(update={"channel": "C0PERF"})
    asides().sweep()
    assert rung.count("out-1") == 1
    for _ in range(2):
        asides().draw("out-1")
    asides().sweep()
    said = [m["text"] for m in slack.people.transcript("C0PERF") if "outside any change" in m["text"]]
    assert len(said) == 1
    assert "<!channel>" not in said[0]
    assert rung.count("out-1") == 1


def test_the_log_marks_what_somebody_overrode_until_it_is_ratified(room: Room) -> None:
    override = e.Override(by="oncall", ratify_by="approvers", within_s=600.0, because="5xx", freezes=("weekend",))
    alone = stories.confirmed(actor=stories.ana()).model_copy(update={"override": override})
    told = [stories.asked(), stories.planned(), alone, *stories.succeeded()[3:]]
    record(room.ledger, "C-8", told)
    assert "emergency, to be ratified until" in room.command("/deploy log since 2h")
    version = len(room.ledger.entries("C-8"))
    room.ledger.append("C-8", e.Lapsed(undo="C-9", back=stories.asked().intent), expect_version=version)
    assert "emergency, not ratified" in room.command("/deploy log since 2h")
