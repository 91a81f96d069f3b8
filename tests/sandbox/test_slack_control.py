"""The control API over HTTP, and the stand-in as a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from slack_sdk import WebClient

from sandbox.slack import PersonError, SlackSandbox
from sandbox.slack.records import Json
from tests.shared import ROOT

BUTTONS: list[Json] = [
    {
        "type": "actions",
        "block_id": "b",
        "elements": [
            {"type": "button", "text": {"type": "plain_text", "text": "Go"}, "action_id": "go", "value": "C-1"},
            {
                "type": "static_select",
                "action_id": "order",
                "options": [{"text": {"type": "plain_text", "text": "decode"}, "value": "decode"}],
            },
        ],
    }
]


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[Json]:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    command = [sys.executable, "-m", "sandbox.slack", "--user", "ana", "--user", "ben"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        yield json.loads(running.stdout.readline())
        running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0


def test_a_process_prints_where_it_is_and_takes_every_verb_over_http(process: Json) -> None:
    with httpx.Client(base_url=process["control_url"], trust_env=False) as control:

        def post(verb: str, **body: Any) -> Any:
            return control.post(verb, json=body).raise_for_status().json()

        def get(verb: str, **query: Any) -> Any:
            return control.get(verb, params=query).raise_for_status().json()

        web = WebClient(process["bot_token"], base_url=process["base_url"])
        ts = web.chat_postMessage(channel=process["channel"], text="card", blocks=BUTTONS)["ts"]
        clicked = post("click", user="ana", channel="ops", ts=ts, action_id="order", value="decode")
        action = clicked["envelope"]["payload"]["actions"][0]
        assert action["selected_option"]["value"] == "decode"
        assert post("command", user="ben", channel="ops", text="/knob list")["payload"]["command"] == "/knob"
        assert post("mention", user="ben", channel="ops", text="hi", thread_ts=ts)["thread_ts"] == ts
        assert post("edit", channel="ops", ts=ts, text="tampered")["edited"]["user"]
        assert get("transcript", channel="ops")[0]["text"] == "tampered"
        assert post("wait", channel="ops", text="tampered", timeout_s=1) == {"found": True}
        assert post("users/set", user="ben", deleted=True)["deleted"] is True
        assert control.post("command", json={"user": "ben", "channel": "ops", "text": "/knob"}).status_code == 400
        post("faults", kind="ratelimited", method="auth.test", retry_after_s=7)
        assert get("faults")[0]["retry_after_s"] == 7
        post("faults/clear")
        assert web.auth_test()["ok"]
        assert [call["method"] for call in get("calls")] == ["chat.postMessage", "auth.test"]
        assert {envelope["kind"] for envelope in get("envelopes")} == {"interactive", "slash_commands", "events_api"}
        assert get("violations") == []
        assert get("state")["sockets"] == 0


def prepared() -> SlackSandbox:
    made = SlackSandbox()
    for name in ("ana", "ben"):
        made.workspace.add_user(name)
    made.workspace.add_channel("ops", [user.id for user in made.workspace.users.values()])
    made.workspace.add_group("approvers", [])
    return made


def test_a_command_carries_entities_and_linked_names() -> None:
    with prepared() as sandbox:
        ana, group = sandbox.workspace.find_user("ana"), next(iter(sandbox.workspace.groups))
        envelope = sandbox.people.command("ben", "ops", "/knob why A<B & C @ana @approvers @nobody #ops")
        assert ana is not None
        channel = sandbox.workspace.find_channel("ops")
        assert channel is not None
        assert envelope.payload["text"] == (
            f"why A&lt;B &amp; C <@{ana.id}|ana> <!subteam^{group}|@approvers> @nobody <#{channel.id}|ops>"
        )
        sandbox.workspace.app.should_escape = False
        assert sandbox.people.command("ben", "ops", "/knob why @ana").payload["text"] == "why @ana"


def test_a_person_can_only_do_what_the_client_would_let_them() -> None:
    with prepared() as sandbox:
        people, workspace = sandbox.people, sandbox.workspace
        workspace.add_user("eve")
        ben, ops = workspace.find_user("ben"), workspace.find_channel("ops")
        assert ben is not None
        assert ops is not None
        secret = workspace.post(ops.id, workspace.app.bot_user, "x", blocks=BUTTONS, ephemeral_to=ben.id)
        for reason, act in (
            ("not in #ops", lambda: people.command("eve", "ops", "/knob")),
            ("not a slash command", lambda: people.command("ana", "ops", "knob")),
            ("cannot see", lambda: people.click("ana", "ops", secret.ts, "go")),
            ("no message", lambda: people.click("ana", "ops", "1.2", "go")),
            ("nobody is called", lambda: people.command("zed", "ops", "/knob")),
            ("is not an option", lambda: people.click("ben", "ops", secret.ts, "order", value="router")),
        ):
            with pytest.raises(PersonError, match=reason):
                act()
        click = people.click("ben", "ops", secret.ts, "go")
        assert click.envelope is not None
        assert click.envelope.payload["container"]["is_ephemeral"] is True
        assert "message" not in click.envelope.payload
        ben.deleted = True
        with pytest.raises(PersonError, match="deactivated"):
            people.click("ben", "ops", secret.ts, "go")


def test_a_mention_reaches_the_app_only_where_it_is_a_member() -> None:
    with prepared() as sandbox:
        ana = sandbox.workspace.find_user("ana")
        assert ana is not None
        sandbox.workspace.add_channel("elsewhere", [ana.id], with_bot=False)
        sandbox.people.mention("ana", "elsewhere", "hi")
        assert sandbox.people.envelopes == []
        sandbox.people.mention("ana", "ops", "hi")
        assert [e.payload["event"]["type"] for e in sandbox.people.envelopes] == ["app_mention"]


def test_an_edit_behind_the_bot_is_an_event_once_the_app_subscribed() -> None:
    with prepared() as sandbox:
        sandbox.workspace.app.events.add("message.channels")
        message = sandbox.people.say("ana", "ops", "before")
        sandbox.people.edit_message_behind_the_bot("ops", message.ts, "after")
        sandbox.people.delete_message("ops", message.ts)
        events = [envelope.payload["event"] for envelope in sandbox.people.envelopes]
        assert [event.get("subtype") for event in events] == [None, "message_changed", "message_deleted"]
        assert events[1]["previous_message"]["text"] == "before"
        assert events[1]["message"]["text"] == "after"
