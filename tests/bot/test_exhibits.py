"""A record is shown at a place once, with its pictures below, whatever Slack does meanwhile."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pytest

from bot.exhibits import Exhibit, Exhibits, is_exhibit, pictures
from bot.posting import Poster
from bot.slack import make_client
from bot.uploading import Uploader
from policies import events as e
from policies.evidence import Draft, Record
from sandbox.slack import Fault, SlackSandbox
from sandbox.slack.faults import FaultKind
from sandbox.slack.records import Json
from tests.bot import stories
from tests.bot.evidence_room import drawn_once
from tests.conftest import Store
from tests.policies.runs import arm, ask
from workers.client import Client
from workers.drawn import Drawn
from workers.ledger import Ledger
from workers.queue import Doorbell

NAME = "ab-1_C0PERF"


def judged() -> Draft:
    """A record of runs."""
    found = ask(arm([1000, 1004, 997]), arm([1128, 1130, 1127]))
    return Draft(knob="TARGET_CTAS", klass=found.verdict, value="512", judgement=found, source="a.json", note="n")


@dataclass
class Room:
    """A record on a real ledger, and what shows it."""

    store: Store
    slack: SlackSandbox
    now: float = stories.T0
    waits: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        web = make_client(self.slack.bot_token, self.slack.base_url, timeout_s=3)
        ledger = Ledger(self.store.redis, lambda: self.now)
        self.client = Client(ledger, Doorbell(self.store.redis), stories.fleet(), lambda: self.now)
        self.drawn = Drawn(self.store.redis)
        uploader = Uploader(web, lambda seconds: time.sleep(min(seconds, 0.06)))
        self.exhibits = Exhibits(self.client, self.drawn, Poster(web), uploader, lambda: self.now, drawn_once)

    def record(self, draft: Draft | None = None) -> Record:
        return self.client.record_evidence(draft or judged(), by="U0ANA")

    def show(self, name: str = NAME, times: int = 1) -> None:
        """Draw it, and again when it is due, as the narrator's tick does."""
        self.exhibits.draw(name)
        for _ in range(times - 1):
            self.now += 120
            for due in self.drawn.due(self.now):
                self.exhibits.draw(due)

    def said(self) -> list[Json]:
        return self.slack.people.transcript("C0PERF")

    def fault(self, kind: FaultKind, method: str, count: int = 1) -> None:
        self.slack.faults.add(Fault(kind, method, count=count))


@pytest.fixture
def room(store: Store, slack: SlackSandbox) -> Room:
    return Room(store, slack)


def test_the_card_names_its_entry_and_the_pictures_stand_below(room: Room) -> None:
    record = room.record()
    room.show()
    room.show()
    card, below = room.said()
    entry = room.client.entries(record.id)[0]
    assert card["metadata"]["event_payload"] == {"change": "ab-1", "seq": entry.seq, "hash": entry.hash}
    assert (below["thread_ts"], len(below["files"])) == (card["ts"], 2)
    assert room.drawn.due(room.now + 3600) == []


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("reset_after_commit", "chat.postMessage"),
        ("server_error", "chat.postMessage"),
        ("reset_after_commit", "files.completeUploadExternal"),
        ("server_error", "files.completeUploadExternal"),
        ("drop_share", "files.completeUploadExternal"),
        ("server_error", "files.info"),
    ],
)
def test_after_a_failure_it_goes_on_where_it_was(room: Room, kind: FaultKind, method: str) -> None:
    room.record()
    room.fault(kind, method)
    room.show(times=6)
    assert [len(message["files"]) for message in room.said()] == [0, 2]


def test_without_the_right_to_upload_the_card_says_so_once(room: Room) -> None:
    room.record()
    room.slack.workspace.app.scopes -= {"files:write"}
    room.show(times=3)
    (card,) = room.said()
    assert "pictures could not be posted: slack refused files.getUploadURLExternal: missing_scope" in card["text"]
    assert room.drawn.due(room.now + 3600) == []


def test_a_slack_that_never_shares_is_given_up_after_a_while_and_said(room: Room) -> None:
    room.record()
    room.fault("drop_share", "files.completeUploadExternal", count=-1)
    room.show(times=6)
    why = "slack refused files.completeUploadExternal: it took the files and shared none"
    assert f"pictures could not be posted: {why}" in room.said()[0]["text"]
    assert len(room.said()) == 1
    assert len([call for call in room.slack.people.calls if call.method == "upload_url"]) == 6


def test_where_the_bot_is_not_nothing_is_shown_and_nothing_is_tried_again(room: Room) -> None:
    room.record()
    room.slack.workspace.add_channel("away", ["U0ANA"], channel_id="C0AWAY", with_bot=False)
    room.show("ab-1_C0AWAY", times=3)
    assert [call.method for call in room.slack.people.calls] == ["chat.postMessage"]


def test_a_typed_record_and_one_without_a_common_load_have_no_pictures(room: Room) -> None:
    typed = stories.record()
    assert pictures(typed) == []
    alone = ask(arm([1000.0], concurrency=1), arm([1000.0], concurrency=2))
    record = room.record(judged().model_copy(update={"judgement": alone, "klass": alone.verdict}))
    assert pictures(record) == []
    room.show()
    assert [message["files"] for message in room.said()] == [[]]


def test_a_name_carries_record_channel_and_thread(room: Room) -> None:
    for place in (Exhibit("ab-17", "C0PERF"), Exhibit("ab-17", "D0X", "1764600000.000700")):
        assert Exhibit.named(place.name) == place
        assert is_exhibit(place.name)
    assert Exhibit("ab-17", "C0PERF", "1764600000.000700").name == "ab-17_C0PERF_1764600000-000700"
    for name in ("C-1", "ab-17", "su-1", "ab-17_c0perf", "ab-17_C0PERF_x", "st-1_C0PERF"):
        assert not is_exhibit(name)
    room.show("ab-404_C0PERF")
    assert room.said() == []


def test_the_pictures_tell_what_was_compared() -> None:
    made = pictures(judged().recorded("ab-3", "U0ANA", stories.T0))
    assert [(one.name, one.title) for one in made] == [
        ("ab-3-effect.png", "ab-3 effect"),
        ("ab-3-runs.png", "ab-3 runs"),
    ]
    assert made[0].words.startswith(
        "TARGET_CTAS 512 against unset: improves: output tok/s, higher is better. C64 +12.8"
    )


def test_other_entries_are_no_exhibits(room: Room) -> None:
    room.client.ledger.append("C-1", stories.asked(), expect_version=0)
    with pytest.raises(ValueError, match="no exhibit"):
        room.exhibits.draw("C-1")
    assert isinstance(room.client.entries("C-1")[0].event, e.Asked)
