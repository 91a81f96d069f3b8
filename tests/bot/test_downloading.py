"""Files that people hand over are read from Slack's own host only, within bounds, and never unpacked."""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from typing import Any

import pytest
from slack_sdk import WebClient
from slack_sdk.web import SlackResponse

from bot.downloading import Downloader, FileNotGiven
from bot.slack import make_client
from sandbox.slack import Fault, SlackSandbox

MIB = 1024 * 1024


@dataclass
class Room:
    """A downloader on the local Slack."""

    slack: SlackSandbox
    paused: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        client = make_client(self.slack.bot_token, self.slack.base_url, timeout_s=3)
        self.downloader = Downloader(client, self.paused.append)

    def drop(self, name: str, data: bytes) -> str:
        self.slack.people.share("ana", "perf", [(name, data)])
        return self.slack.workspace.files.all()[-1].id

    def refused(self, file_id: str) -> str:
        with pytest.raises(FileNotGiven) as caught:
            self.downloader.fetch(file_id)
        return str(caught.value)


@pytest.fixture
def room(slack: SlackSandbox) -> Room:
    return Room(slack)


def test_the_bytes_come_as_they_are(room: Room) -> None:
    bomb = gzip.compress(b"0" * MIB)
    for name, data in (("a.json", b'{"a": 1}'), ("b.json.gz", bomb), ("most.json", b" " * 8 * MIB)):
        fetched = room.downloader.fetch(room.drop(name, data))
        assert (fetched.name, fetched.data == data) == (name, True)


def test_a_file_over_8_mib_is_not_even_asked_for(room: Room) -> None:
    assert "`big.json` has 9.0 MiB, expected at most 8 MiB" in room.refused(room.drop("big.json", b"0" * 9 * MIB))
    assert [call.method for call in room.slack.people.calls] == ["files.info"]


def test_one_that_says_less_than_it_sends_is_not_read_to_its_end(room: Room) -> None:
    file_id = room.drop("liar.json", b"0" * 20 * MIB)
    stored = room.slack.workspace.files.get(file_id)
    assert stored is not None
    stored.length = 10
    assert "`liar.json` is larger than slack says" in room.refused(file_id)


@pytest.mark.parametrize("kind", ["server_error", "reset_before_commit", "reset_after_commit", "ratelimited"])
def test_a_failure_on_the_way_is_tried_again(room: Room, kind: str) -> None:
    file_id = room.drop("a.json", b"{}")
    room.slack.faults.add(Fault(kind, "url_private", retry_after_s=1))  # type: ignore[arg-type]  # a kind of fault
    assert room.downloader.fetch(file_id).data == b"{}"
    assert len(room.paused) == 1


def test_a_failure_that_stays_is_said_with_the_name(room: Room) -> None:
    file_id = room.drop("a.json", b"{}")
    room.slack.faults.add(Fault("server_error", "url_private", count=-1))
    assert room.refused(file_id) == "`a.json` could not be read from slack (status 503) (send it again in a while)"
    assert len(room.paused) == 3


def test_a_page_for_signing_in_is_not_taken_for_the_file(room: Room) -> None:
    file_id = room.drop("a.json", b"{}")
    room.slack.workspace.app.scopes -= {"files:read"}
    assert "scope files:read" in room.refused(file_id)
    room.slack.workspace.app.scopes |= {"files:read"}
    room.slack.workspace.app.token_error = "token_revoked"
    assert "token_revoked" in room.refused(file_id)


def test_a_redirect_is_not_followed_with_the_token(room: Room) -> None:
    class Losing(WebClient):
        def files_info(self, *, file: str, **more: Any) -> SlackResponse:
            found = super().files_info(file=file, **more)
            room.slack.workspace.app.scopes -= {"files:read"}
            return found

    file_id = room.drop("a.json", b"{}")
    client = Losing(room.slack.bot_token, base_url=room.slack.base_url)
    client.proxy = None
    with pytest.raises(FileNotGiven, match="asks to sign in instead"):
        Downloader(client, room.paused.append).fetch(file_id)


def test_the_token_goes_to_no_other_host(room: Room) -> None:
    file_id = room.drop("a.json", b"{}")
    room.slack.workspace.files.origin = "http://127.0.0.1:9"
    assert "is not kept by slack itself" in room.refused(file_id)
    assert [call.method for call in room.slack.people.calls] == ["files.info"]


def test_files_that_are_gone_or_hidden_are_not_given(room: Room) -> None:
    room.slack.workspace.add_channel("hidden", ["U0ANA"], channel_id="C0HID", is_private=True, with_bot=False)
    room.slack.people.share("ana", "hidden", [("secret.json", b"{}")])
    (hidden,) = room.slack.workspace.files.all()
    assert "file_not_found" in room.refused(hidden.id)
    assert "secret.json" not in room.refused(hidden.id)
    assert "file_not_found" in room.refused("F404")
