"""Files of the stand-in through the real slack_sdk client: uploads in three steps, shares, downloads, forms."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError

import httpx
import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from sandbox.slack import Fault, PersonError, SlackSandbox
from sandbox.slack.records import Json
from tests.shared import shared

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
READ = {"files:read"}


class Room:
    """A running workspace with ana, ben and a channel of both and the bot."""

    def __init__(self, sandbox: SlackSandbox) -> None:
        self.sandbox = sandbox
        self.workspace = sandbox.workspace
        self.people = sandbox.people
        self.workspace.add_user("ana", user_id="U0ANA")
        self.workspace.add_user("ben", user_id="U0BEN")
        self.workspace.add_channel("ops", ["U0ANA", "U0BEN"], channel_id="C0OPS")
        self.workspace.add_channel("anas", ["U0ANA"], channel_id="C0ANAS", is_private=True, with_bot=False)
        self.client = WebClient(sandbox.bot_token, base_url=sandbox.base_url)

    def announced(self, data: bytes = PNG, **more: Any) -> tuple[str, str]:
        made = self.client.files_getUploadURLExternal(filename="effect.png", length=len(data), **more)
        return str(made["file_id"]), str(made["upload_url"])

    def uploaded(self, data: bytes = PNG, **more: Any) -> str:
        file_id, url = self.announced(data, **more)
        assert httpx.post(url, content=data, trust_env=False).text == f"OK - {len(data)}"
        return file_id

    def complete(self, *ids: str, **more: Any) -> Json:
        answer = self.client.files_completeUploadExternal(files=[{"id": one, "title": "t"} for one in ids], **more)
        assert isinstance(answer.data, dict)
        return answer.data

    def error(self, method: str, **args: Any) -> str:
        with pytest.raises(SlackApiError) as caught:
            self.client.api_call(method, json=args)
        return str(caught.value.response["error"])

    def violations(self) -> list[str]:
        return [violation.code for violation in self.workspace.violations]

    def messages(self) -> list[Json]:
        return self.people.transcript("ops")

    def get(self, url: str, token: str | None = None) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token or self.sandbox.bot_token}"}
        return httpx.get(url, headers=headers, trust_env=False)


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    with SlackSandbox(reference=shared("slack")) as sandbox:
        yield Room(sandbox)


def test_an_upload_of_the_sdk_arrives_in_the_thread_with_its_words(room: Room) -> None:
    parent = str(room.client.chat_postMessage(channel="C0OPS", text="a plan")["ts"])
    room.client.files_upload_v2(
        file=PNG, filename="Effect 1.png", title="effect", alt_txt="C64 +12.8 %", channel="C0OPS", thread_ts=parent,
        initial_comment="evidence ab-17",
    )  # fmt: skip
    assert room.people.wait_for(lambda: len(room.messages()) == 2)
    said = room.messages()[1]
    (file,) = said["files"]
    assert (said["text"], said["thread_ts"], said["who"]) == ("evidence ab-17", parent, "clawback")
    assert (file["title"], file["alt_txt"], file["mimetype"], file["size"]) == (
        "effect",
        "C64 +12.8 %",
        "image/png",
        48,
    )
    assert file["url_private"].endswith(f"/files-pri/T0SANDBOX-{file['id']}/effect_1.png")
    assert room.violations() == []


def test_the_answer_comes_before_the_share_and_files_info_tells_of_it_later(room: Room) -> None:
    file_id = room.uploaded()
    assert "shares" not in room.complete(file_id, channel_id="C0OPS")["files"][0]
    assert room.people.wait_for(room.messages)
    info = room.client.files_info(file=file_id)["file"]
    assert info["channels"] == ["C0OPS"]
    assert info["shares"]["public"]["C0OPS"][0]["ts"] == room.messages()[0]["ts"]
    assert info["is_public"]


def test_without_a_channel_a_file_stays_private(room: Room) -> None:
    file_id = room.uploaded()
    room.complete(file_id)
    assert room.client.files_info(file=file_id)["file"]["shares"] == {}
    assert room.messages() == []


def test_a_share_may_be_lost_and_several_files_are_one_message(room: Room) -> None:
    room.sandbox.faults.add(Fault("drop_share", "files.completeUploadExternal"))
    lost = room.uploaded()
    room.complete(lost, channel_id="C0OPS")
    room.complete(room.uploaded(), room.uploaded(), channel_id="C0OPS")
    assert room.people.wait_for(room.messages)
    assert [len(message["files"]) for message in room.messages()] == [2]
    assert room.client.files_info(file=lost)["file"]["shares"] == {}


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ({"filename": "x.png"}, "invalid_arguments"),
        ({"filename": "x.png", "length": 0}, "missing_argument"),
        ({"filename": "x.png", "length": 1 << 40}, "file_upload_size_restricted"),
        ({"filename": "x.png", "length": 9, "alt_txt": "a" * 1001}, "alt_txt_too_large"),
        ({"filename": "x.png", "length": 9, "title": "?"}, "invalid_arguments"),
    ],
)
def test_what_cannot_be_announced(room: Room, args: Json, error: str) -> None:
    assert room.error("files.getUploadURLExternal", **args) == error


def test_what_cannot_be_finished(room: Room) -> None:
    method = "files.completeUploadExternal"
    nothing, _ = room.announced()
    done = room.uploaded()
    room.complete(done)
    room.people.share("ana", "ops", [("a.json", b"{}")])
    anas = room.messages()[0]["files"][0]["id"]
    for files, error in (
        ([{"id": "F404"}], "file_not_found"),
        ([{"id": nothing}], "file_not_found"),
        ([{"id": done}], "file_update_failed"),
        ([{"id": anas}], "file_not_found"),
        ([], "invalid_arguments"),
        ([{"title": "x"}], "invalid_arguments"),
    ):
        assert room.error(method, files=files) == error, files
    mine = room.uploaded()
    for channel, error in (("C404", "channel_not_found"), ("C0ANAS", "channel_not_found")):
        assert room.error(method, files=[{"id": mine}], channel_id=channel) == error
    room.workspace.add_channel("open", ["U0ANA"], channel_id="C0OPEN", with_bot=False)
    assert room.error(method, files=[{"id": mine}], channel_id="C0OPEN") == "not_in_channel"
    assert "upload_missing" in room.violations()
    assert "completed_twice" in room.violations()


def test_the_upload_address_takes_what_was_announced_once(room: Room) -> None:
    _, url = room.announced()
    assert httpx.post(url, content=PNG + b"more", trust_env=False).status_code == 400
    assert room.violations() == ["upload_length"]
    assert httpx.post(url, files={"file": ("a.png", PNG)}, trust_env=False).text == "OK - 48"
    assert httpx.post(url, content=PNG, trust_env=False).status_code == 404
    room.sandbox.faults.add(Fault("server_error", "upload_url", status=502))
    with pytest.raises(HTTPError, match="502"):
        room.client.files_upload_v2(file=PNG, filename="x.png")


def test_a_call_without_its_scope_is_told_which_one_is_missing(room: Room) -> None:
    file_id = room.uploaded()
    room.workspace.app.scopes -= {"files:read", "files:write"}
    for method, args in (
        ("files.getUploadURLExternal", {"filename": "x", "length": 1}),
        ("files.completeUploadExternal", {"files": [{"id": file_id}]}),
        ("files.info", {"file": file_id}),
    ):
        assert room.error(method, **args) == "missing_scope"


def test_bytes_are_for_a_token_that_may_read_and_everybody_else_is_sent_to_a_page(room: Room) -> None:
    room.people.share("ana", "ops", [("a.json", b'{"a": 1}')], "look")
    (file,) = room.messages()[0]["files"]
    for name in ("url_private", "url_private_download"):
        assert room.get(file[name]).content == b'{"a": 1}'
        assert room.get(file[name], "xoxb-wrong").status_code == 302
        assert httpx.get(file[name], trust_env=False).status_code == 302
    room.workspace.app.scopes -= READ
    assert room.get(file["url_private"]).status_code == 302


def test_the_app_sees_its_own_files_and_those_that_are_shared_where_it_is(room: Room) -> None:
    room.people.share("ana", "anas", [("secret.json", b"{}")])
    room.people.share("ana", "ops", [("a.json", b"{}")])
    hidden, seen = (file.id for file in room.workspace.files.all())
    assert room.error("files.info", file=hidden) == "file_not_found"
    assert room.get(room.workspace.files.shown(hidden)["url_private"]).status_code == 404
    assert room.client.files_info(file=seen)["file"]["user"] == "U0ANA"
    assert room.error("files.delete", file=seen) == "cant_delete_file"
    mine = room.uploaded()
    room.client.files_delete(file=mine)
    assert room.error("files.info", file=mine) == "file_deleted"


def test_files_that_a_person_drops_come_with_the_mention_and_as_events(room: Room) -> None:
    room.workspace.app.events |= {"file_shared", "message.channels"}
    room.people.share("ana", "ops", [("a.json", b"{}"), ("b.json", b"[]")], "@clawback evidence add")
    events = [envelope.payload["event"] for envelope in room.people.envelopes]
    assert [(e["type"], e.get("subtype")) for e in events] == [
        ("message", "file_share"),
        ("file_shared", None),
        ("file_shared", None),
        ("app_mention", None),
    ]
    assert [file["name"] for file in events[-1]["files"]] == ["a.json", "b.json"]
    assert events[1]["file_id"] == events[-1]["files"][0]["id"]
    with pytest.raises(PersonError, match="no more than 20"):
        room.people.share("ana", "ops", [("a", b"x")] * 21)


def modal(**element: object) -> Json:
    words = {"type": "plain_text", "text": "Files"}
    block = {
        "type": "input",
        "block_id": "a",
        "label": words,
        "element": {"type": "file_input", "action_id": "f"} | element,
    }
    return {"type": "modal", "title": words, "submit": words, "blocks": [block]}


def test_a_form_takes_files_and_the_app_may_read_them_then(room: Room) -> None:
    trigger = room.sandbox.tickets.new_trigger("U0ANA")
    view_id = str(room.client.views_open(trigger_id=trigger, view=modal(max_files=10))["view"]["id"])
    (mine,) = room.people.upload("ana", [("a.json", b"{}")])
    (bens,) = room.people.upload("ben", [("b.json", b"{}")])
    with pytest.raises(PersonError, match="uploaded no file"):
        room.people.submit_view("ana", view_id, {"a": {"f": {"type": "file_input", "files": [bens.id]}}})
    assert room.error("files.info", file=mine.id) == "file_not_found"
    sent = room.people.submit_view("ana", view_id, {"a": {"f": {"type": "file_input", "files": [mine.id]}}})
    (file,) = sent.payload["view"]["state"]["values"]["a"]["f"]["files"]
    assert not [key for key in sent.payload["view"] if key.startswith("_")]
    assert room.get(file["url_private_download"]).content == b"{}"


def test_a_form_with_files_needs_the_scope_and_its_limits(room: Room) -> None:
    for view in (modal(max_files=11), modal(max_files=0), modal(filetypes=[])):
        trigger = room.sandbox.tickets.new_trigger("U0ANA")
        assert room.error("views.open", trigger_id=trigger, view=view) == "invalid_arguments"
    room.workspace.app.scopes -= READ
    trigger = room.sandbox.tickets.new_trigger("U0ANA")
    assert room.error("views.open", trigger_id=trigger, view=modal()) == "invalid_arguments"
    assert "missing_scope" in room.violations()


def test_a_form_that_is_closed_is_gone(room: Room) -> None:
    trigger = room.sandbox.tickets.new_trigger("U0ANA")
    view_id = str(room.client.views_open(trigger_id=trigger, view=modal())["view"]["id"])
    with pytest.raises(PersonError, match="no open view"):
        room.people.close_view("ben", view_id)
    assert room.people.close_view("ana", view_id) is None
    with pytest.raises(PersonError, match="no open view"):
        room.people.submit_view("ana", view_id, {})


def test_the_page_gives_files_to_those_who_see_them_and_runs_nothing_of_them(room: Room) -> None:
    room.people.share("ana", "ops", [("a.html", b"<script>1</script>"), ("b.png", PNG)])
    html, png = room.workspace.files.all()
    with httpx.Client(base_url=room.sandbox.page_url, trust_env=False) as http:
        shown = http.get(f"/_page/files/{html.id}/a.html?as=ben")
        assert shown.content == b"<script>1</script>"
        assert shown.headers["content-type"] == "application/octet-stream"
        assert shown.headers["content-disposition"].startswith("attachment")
        assert "sandbox" in shown.headers["content-security-policy"]
        picture = http.get(f"/_page/files/{png.id}/b.png?as=ana")
        assert (picture.headers["content-type"], picture.headers["content-disposition"][:6]) == ("image/png", "inline")
        room.workspace.add_user("cleo")
        for who in ("cleo", "nobody", ""):
            assert http.get(f"/_page/files/{png.id}/b.png?as={who}").status_code == 404


def test_the_control_api_drops_files_too(room: Room) -> None:
    body = {
        "user": "ana",
        "channel": "ops",
        "text": "hi",
        "files": [{"name": "a.json", "base64": base64.b64encode(b"{}").decode()}],
    }
    with httpx.Client(base_url=room.sandbox.page_url, trust_env=False) as http:
        assert http.post("/_control/share", json=body).status_code == 200
        assert http.post("/_control/share", json=body | {"files": [{"name": "a", "base64": "?"}]}).status_code == 400
        assert [file["name"] for file in http.get("/_control/files").json()] == ["a.json"]
        (made,) = http.post("/_control/upload", json={"user": "ana", "files": body["files"]}).json()
        assert made["name"] == "a.json"
