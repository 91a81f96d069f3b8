"""A real Bolt app in Socket Mode against the stand-in workspace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from slack_bolt import Ack, App, Respond, Say
from slack_bolt.adapter.socket_mode import SocketModeHandler
from slack_sdk import WebClient

from sandbox.slack import PersonError, SlackSandbox
from sandbox.slack.records import Json
from tests.shared import shared

CONFIRM = {
    "title": {"type": "plain_text", "text": "Sure?"},
    "text": {"type": "plain_text", "text": "Restart decode?"},
    "confirm": {"type": "plain_text", "text": "Yes"},
    "deny": {"type": "plain_text", "text": "No"},
}


def button(action_id: str, *, confirm: bool = False) -> Json:
    """A button."""
    made: Json = {
        "type": "button",
        "text": {"type": "plain_text", "text": "Go"},
        "action_id": action_id,
        "value": "C-1",
    }
    return made | ({"confirm": CONFIRM} if confirm else {})


def plan_blocks() -> list[Json]:
    """A card with two buttons."""
    return [
        {"type": "section", "text": {"type": "mrkdwn", "text": "*plan*"}},
        {"type": "actions", "elements": [button("confirm", confirm=True), button("details")]},
    ]


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlackSandbox]:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    made = SlackSandbox(reference=shared("slack"))
    made.workspace.add_user("ana")
    made.workspace.add_user("ben")
    made.workspace.add_channel("ops", [u.id for u in made.workspace.users.values()])
    with made:
        yield made


@pytest.fixture
def app(sandbox: SlackSandbox) -> Iterator[App]:
    bolt = App(client=WebClient(sandbox.bot_token, base_url=sandbox.base_url))

    @bolt.command("/knob")
    def knob(ack: Ack, respond: Respond, body: Json, client: WebClient) -> None:
        ack()
        if body["text"] == "hi":
            respond("hi there")
            return
        client.chat_postMessage(channel=body["channel_id"], text="plan: " + body["text"], blocks=plan_blocks())

    @bolt.action("confirm")
    def confirm(ack: Ack, body: Json, client: WebClient) -> None:
        ack()
        who = body["user"]["id"]
        client.chat_update(
            channel=body["channel"]["id"], ts=body["message"]["ts"], text=f"confirmed by <@{who}>",
            blocks=[{"type": "section", "text": {"type": "mrkdwn", "text": f"confirmed by <@{who}>"}}],
        )  # fmt: skip
        client.chat_postMessage(channel=body["channel"]["id"], thread_ts=body["message"]["ts"], text="started")

    @bolt.action("details")
    def details(ack: Ack, respond: Respond) -> None:
        ack()
        respond("the diff", replace_original=False)

    @bolt.event("app_mention")
    def mentioned(event: Json, say: Say) -> None:
        say("you said " + event["text"], thread_ts=event.get("thread_ts", event["ts"]))

    handler = SocketModeHandler(bolt, sandbox.app_token)
    handler.connect()  # type: ignore[no-untyped-call]
    assert sandbox.people.wait_for(lambda: sandbox.sockets.connected == 1)
    yield bolt
    handler.close()  # type: ignore[no-untyped-call]


def texts(sandbox: SlackSandbox) -> list[str]:
    return [line["text"] for line in sandbox.people.transcript("ops")]


def saw(sandbox: SlackSandbox, text: str) -> bool:
    return sandbox.people.wait_for(lambda: any(text in line for line in texts(sandbox)))


def test_a_command_is_acknowledged_and_its_response_is_ephemeral(sandbox: SlackSandbox, app: App) -> None:
    envelope = sandbox.people.command("ana", "ops", "/knob hi")
    assert envelope.wait()
    assert saw(sandbox, "hi there")
    line = sandbox.people.transcript("ops")[-1]
    ana = sandbox.workspace.find_user("ana")
    assert ana is not None
    assert line["ephemeral_to"] == ana.id
    assert sandbox.people.transcript("ops", seen_by="ben") == []
    assert sandbox.workspace.violations == []


def test_a_click_first_shows_the_confirm_dialog_and_then_reaches_the_app(sandbox: SlackSandbox, app: App) -> None:
    sandbox.people.command("ana", "ops", "/knob restore A&B=1 <x>")
    assert saw(sandbox, "plan: restore A&amp;B=1 &lt;x&gt;")
    ts = sandbox.people.transcript("ops")[-1]["ts"]
    asked = sandbox.people.click("ben", "ops", ts, "confirm")
    assert asked.envelope is None
    assert asked.confirm == CONFIRM
    assert sandbox.people.click("ben", "ops", ts, "confirm", confirmed=True).wait()
    assert saw(sandbox, "started")
    first, second = sandbox.people.transcript("ops")
    assert first["text"].startswith("confirmed by <@U")
    assert first["edited"] is not None
    assert second["thread_ts"] == ts
    assert sandbox.workspace.violations == []
    with pytest.raises(PersonError, match="no element 'confirm'"):
        sandbox.people.click("ben", "ops", ts, "confirm", confirmed=True)


def test_a_mention_in_a_thread_is_answered_in_that_thread(sandbox: SlackSandbox, app: App) -> None:
    parent = sandbox.people.say("ana", "ops", "a parent")
    sandbox.people.mention("ben", "ops", "status", parent.ts)
    assert saw(sandbox, "you said")
    assert [line["thread_ts"] for line in sandbox.people.transcript("ops")] == [None, parent.ts, parent.ts]
    assert sandbox.people.wait_for(lambda: all(e.acked_ms is not None for e in sandbox.people.envelopes))
    assert sandbox.workspace.violations == []
