"""Pictures come into a channel or thread once, whatever Slack does with the three steps."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from bot.filehosts import may_hold_files
from bot.posting import Posted
from bot.slack import SlackRefused, SlackUnclear, make_client
from bot.uploading import UNSEEN, NotShared, Picture, Sent, Uploader
from sandbox.slack import Fault, SlackSandbox
from sandbox.slack.records import Json

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 100
EFFECT = Picture("effect.png", "effect", "C64 +12.8 %", PNG)
RUNS = Picture("runs.png", "runs", "A 1, B 2", PNG)
COMPLETE = "files.completeUploadExternal"


@dataclass
class Room:
    """An uploader on the local Slack; it waits for the workspace's sake only, never long."""

    slack: SlackSandbox
    paused: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        client = make_client(self.slack.bot_token, self.slack.base_url, timeout_s=3)
        self.parent = str(client.chat_postMessage(channel="C0PERF", text="a record")["ts"])
        self.uploader = Uploader(client, self.pause)

    def pause(self, seconds: float) -> None:
        self.paused.append(seconds)
        self.slack.people.wait_for(self.pictured, min(seconds, 0.1))

    def pictured(self) -> list[Json]:
        return [message for message in self.slack.people.transcript("C0PERF") if message["files"]]

    def upload(self) -> Posted:
        sent = [self.uploader.send(EFFECT), self.uploader.send(RUNS)]
        return self.uploader.share(sent, "C0PERF", self.parent, "evidence ab-17")

    def fault(self, kind: str, method: str, **more: int) -> None:
        self.slack.faults.add(Fault(kind, method, **more))  # type: ignore[arg-type]  # a kind of fault


@pytest.fixture
def room(slack: SlackSandbox) -> Room:
    return Room(slack)


def test_two_pictures_are_one_message_in_the_thread_with_their_words(room: Room) -> None:
    posted = room.upload()
    (message,) = room.pictured()
    assert posted == Posted(message["ts"], room.parent)
    assert (message["text"], message["thread_ts"]) == ("evidence ab-17", room.parent)
    assert [(f["name"], f["title"], f["alt_txt"]) for f in message["files"]] == [
        ("effect.png", "effect", "C64 +12.8 %"),
        ("runs.png", "runs", "A 1, B 2"),
    ]


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("server_error", "files.getUploadURLExternal"),
        ("reset_after_commit", "files.getUploadURLExternal"),
        ("ratelimited", "files.getUploadURLExternal"),
        ("server_error", "upload_url"),
        ("reset_before_commit", "upload_url"),
        ("reset_after_commit", "upload_url"),
        ("error_after_commit", "upload_url"),
        ("ratelimited", COMPLETE),
        ("reset_after_commit", COMPLETE),
        ("error_after_commit", COMPLETE),
    ],
)
def test_a_fault_in_any_step_costs_no_picture_and_doubles_none(room: Room, kind: str, method: str) -> None:
    room.fault(kind, method)
    posted = room.upload()
    assert [message["ts"] for message in room.pictured()] == [posted.ts]


def test_an_end_that_is_unclear_can_be_asked_for_again(room: Room) -> None:
    sent = [room.uploader.send(EFFECT)]
    room.fault("reset_before_commit", COMPLETE)
    with pytest.raises(SlackUnclear) as caught:
        room.uploader.share(sent, "C0PERF", room.parent)
    assert not isinstance(caught.value, NotShared)
    first = room.uploader.share(sent, "C0PERF", room.parent)
    assert room.uploader.share(sent, "C0PERF", room.parent) == first
    assert len(room.pictured()) == 1


def test_a_share_that_slack_drops_is_said(room: Room) -> None:
    room.fault("drop_share", COMPLETE)
    sent = [room.uploader.send(EFFECT)]
    with pytest.raises(NotShared, match="was not shared"):
        room.uploader.share(sent, "C0PERF", room.parent)
    assert sum(room.paused) >= 8
    assert not room.uploader.is_shown(sent[0], "C0PERF")


def test_without_the_right_to_read_files_nothing_is_waited_for(room: Room) -> None:
    sent = [room.uploader.send(EFFECT)]
    room.slack.workspace.app.scopes -= {"files:read"}
    assert room.uploader.share(sent, "C0PERF", None) == UNSEEN
    assert room.slack.people.wait_for(room.pictured)
    assert room.paused == [0.1]


def test_a_file_whose_record_cannot_be_read_is_not_shared_blindly(room: Room) -> None:
    sent = [room.uploader.send(EFFECT)]
    room.fault("server_error", "files.info")
    with pytest.raises(SlackUnclear):
        room.uploader.share(sent, "C0PERF", None)
    assert room.uploader.share(sent, "C0PERF", None).ts == room.pictured()[0]["ts"]


def test_without_the_right_to_write_files_the_refusal_names_it(room: Room) -> None:
    room.slack.workspace.app.scopes -= {"files:write"}
    with pytest.raises(SlackRefused, match="missing_scope"):
        room.uploader.send(EFFECT)
    with pytest.raises(SlackRefused, match="missing_scope"):
        room.uploader.share([Sent("F1", "x")], "C0PERF", None)


@pytest.mark.parametrize(
    ("url", "api", "may"),
    [
        ("https://files.slack.com/files-pri/T-F/a", "https://slack.com/api/", True),
        ("https://slack.com/x", "https://slack.com/api/", True),
        ("https://files.slack-gov.com/x", "https://slack-gov.com/api/", True),
        ("https://files.slack.com/x", "https://slack-gov.com/api/", False),
        ("http://files.slack.com/x", "https://slack.com/api/", False),
        ("https://files.slack.com:8443/x", "https://slack.com/api/", False),
        ("https://files.slack.com.evil.example/x", "https://slack.com/api/", False),
        ("https://evil.example/files.slack.com", "https://slack.com/api/", False),
        ("https://files.slack.com@evil.example/x", "https://slack.com/api/", False),
        ("https://u:p@files.slack.com/x", "https://slack.com/api/", False),
        ("https://files.evil.example/x", "https://slack.example/api/", False),
        ("http://127.0.0.1:5000/x", "http://127.0.0.1:5000/api/", True),
        ("http://127.0.0.1:5001/x", "http://127.0.0.1:5000/api/", False),
        ("https://files.slack.com/x", "http://127.0.0.1:5000/api/", False),
        ("http://169.254.169.254/latest", "https://slack.com/api/", False),
        ("file:///etc/passwd", "https://slack.com/api/", False),
        ("http://[::1", "https://slack.com/api/", False),
        ("", "https://slack.com/api/", False),
    ],
)
def test_bytes_of_files_go_to_slack_and_nowhere_else(url: str, api: str, may: bool) -> None:
    assert may_hold_files(url, api) is may
