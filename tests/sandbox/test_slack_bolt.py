"""A real Bolt app in Socket Mode against the stand-in workspace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from slack_bolt import Ack, App, Respond, Say
from slack_bolt.adapter.socket_mode import SocketModeHandler
from slack_sdk import WebClient

from bot.hangup import hang_up
from sandbox.slack import Fault, PersonError, SlackSandbox
from sandbox.slack.records import Json
from tests.shared import shared

CONFIRM = {
    "title": {"type": "plain_text", "text": "Sure?"},
    "text": {"type": "plain_text", "text": "Restart decode?"},
    "confirm": {"type": "plain_text", "text": "Yes"},
    "deny": {"type": "plain_text", "text": "No"},
}


MODAL: Json = {
    "type": "modal",
    "callback_id": "why",
    "title": {"type": "plain_text", "text": "Why?"},
    "submit": {"type": "plain_text", "text": "Send"},
    "blocks": [
        {
            "type": "input",
            "block_id": "reason",
            "label": {"type": "plain_text", "text": "Reason"},
            "element": {"type": "plain_text_input", "action_id": "text"},
        }
    ],
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


@pytest.fixture(scope="module")
def running() -> Iterator[SlackSandbox]:
    made = SlackSandbox(reference=shared("slack"), ping_interval_s=0.2)
    made.workspace.add_user("ana")
    made.workspace.add_user("ben")
    made.workspace.add_channel("ops", [u.id for u in made.workspace.users.values()], channel_id="C0OPS")
    with pytest.MonkeyPatch.context() as patch, made:
        for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
            patch.delenv(name, raising=False)
        yield made


@pytest.fixture
def sandbox(running: SlackSandbox) -> SlackSandbox:
    """The workspace, without anything that an earlier test left."""
    workspace = running.workspace
    for record in (workspace.messages, workspace.calls, workspace.envelopes, workspace.violations, workspace.views):
        record.clear()
    for user in workspace.users.values():
        user.deleted = False
    return running


@pytest.fixture(scope="module")
def app(running: SlackSandbox) -> Iterator[App]:
    sandbox = running
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

    @bolt.command("/ask")
    def ask(ack: Ack, body: Json, client: WebClient) -> None:
        ack("asking")
        client.views_open(trigger_id=body["trigger_id"], view=MODAL)

    @bolt.view("why")
    def why(ack: Ack, view: Json) -> None:
        value = view["state"]["values"]["reason"]["text"]["value"]
        if value:
            ack()
        else:
            ack(response_action="errors", errors={"reason": "say why"})

    @bolt.event("user_change")
    def user_changed(event: Json, client: WebClient) -> None:
        client.chat_postMessage(channel="C0OPS", text=f"{event['user']['name']} deleted={event['user']['deleted']}")

    @bolt.event("app_mention")
    def mentioned(event: Json, say: Say) -> None:
        say("you said " + event["text"], thread_ts=event.get("thread_ts", event["ts"]))

    handler = SocketModeHandler(bolt, sandbox.app_token)
    handler.connect()  # type: ignore[no-untyped-call]
    assert sandbox.people.wait_for(lambda: sandbox.sockets.connected == 1)
    yield bolt
    hang_up(handler.client)


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


def test_a_modal_opens_keeps_its_errors_and_closes(sandbox: SlackSandbox, app: App) -> None:
    assert sandbox.people.command("ana", "ops", "/ask").wait()
    assert saw(sandbox, "asking")
    assert sandbox.people.wait_for(lambda: sandbox.workspace.views)
    view_id = next(iter(sandbox.workspace.views))

    def submit(value: str) -> None:
        values = {"reason": {"text": {"type": "plain_text_input", "value": value}}}
        assert sandbox.people.submit_view("ana", view_id, values).wait()

    submit("")
    assert sandbox.workspace.views[view_id]["_errors"] == {"reason": "say why"}
    with pytest.raises(PersonError, match="no open view"):
        sandbox.people.submit_view("ben", view_id, {})
    submit("because")
    assert sandbox.workspace.views == {}
    assert sandbox.workspace.violations == []


def test_two_people_click_at_the_same_time_and_both_clicks_arrive(sandbox: SlackSandbox, app: App) -> None:
    sandbox.people.command("ana", "ops", "/knob list")
    assert saw(sandbox, "plan: list")
    ts = sandbox.people.transcript("ops")[-1]["ts"]
    clicks = [sandbox.people.click(who, "ops", ts, "details") for who in ("ana", "ben")]
    assert all(click.wait() for click in clicks)
    assert sandbox.people.wait_for(lambda: texts(sandbox).count("the diff") == 2)
    ana, ben = sandbox.workspace.find_user("ana"), sandbox.workspace.find_user("ben")
    assert ana is not None
    assert ben is not None
    readers = [line["ephemeral_to"] for line in sandbox.people.transcript("ops")[1:]]
    assert sorted(readers) == sorted([ana.id, ben.id])


def test_a_deactivated_person_is_announced_to_the_app(sandbox: SlackSandbox, app: App) -> None:
    sandbox.admin.set_user("ben", deleted=True)
    assert saw(sandbox, "ben deleted=True")
    with pytest.raises(PersonError, match="deactivated"):
        sandbox.people.command("ben", "ops", "/knob list")


def test_bolt_runs_a_doubled_command_twice(sandbox: SlackSandbox, app: App) -> None:
    sandbox.faults.add(Fault("duplicate_envelope", "slash_commands"))
    sandbox.people.command("ana", "ops", "/knob list")
    assert sandbox.people.wait_for(lambda: texts(sandbox).count("plan: list") == 2)
