"""What the stand-in sends has the keys and types of recorded payloads and of the method reference."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from slack_sdk import WebClient

from sandbox.slack import SlackSandbox
from sandbox.slack.records import Json
from tests.shared import shared

GRID_ONLY = {"enterprise_id", "enterprise_name", "enterprise", "authed_users"}
BLOCKS: list[Json] = [
    {
        "type": "actions",
        "block_id": "b",
        "elements": [
            {"type": "button", "text": {"type": "plain_text", "text": "Button"}, "action_id": "a", "value": "click"}
        ],
    }
]
VIEW: Json = {
    "type": "modal",
    "title": {"type": "plain_text", "text": "t"},
    "close": {"type": "plain_text", "text": "Cancel"},
    "submit": {"type": "plain_text", "text": "Submit"},
    "blocks": [
        {
            "type": "input",
            "block_id": "hspI",
            "optional": False,
            "label": {"type": "plain_text", "text": "Label"},
            "element": {"type": "plain_text_input", "action_id": "maBWU"},
        }
    ],
}
OPEN_KEYS = {"values"}
"""Below these, keys are ids."""


def missing(sample: Any, ours: Any, where: str = "") -> list[str]:
    """Paths of the sample that we lack or that have another type."""
    if isinstance(sample, dict) and isinstance(ours, dict):
        found: list[str] = []
        for key, value in sample.items():
            if key in GRID_ONLY:
                continue
            if key not in ours:
                found.append(f"{where}/{key}")
            elif key not in OPEN_KEYS:
                found += missing(value, ours[key], f"{where}/{key}")
        return found
    if isinstance(sample, list) and isinstance(ours, list):
        return missing(sample[0], ours[0], f"{where}/0") if sample and ours else []
    if sample is None or ours is None or type(sample) is type(ours):
        return []
    return [f"{where}: {type(ours).__name__} instead of {type(sample).__name__}"]


@pytest.fixture
def sandbox(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlackSandbox]:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    made = SlackSandbox(reference=shared("slack"))
    ana = made.workspace.add_user("ana")
    made.workspace.add_channel("ops", [ana.id], channel_id="C0OPS")
    made.workspace.app.events.add("message.channels")
    with made:
        yield made


@pytest.fixture
def web(sandbox: SlackSandbox) -> WebClient:
    return WebClient(sandbox.bot_token, base_url=sandbox.base_url)


def samples(kind: str) -> list[Json]:
    recorded = json.loads((shared("slack") / "payload-samples/inbound-from-bolt-and-sdk-tests.json").read_text())
    return [entry["payload"] for entry in recorded[kind] if entry.get("complete_per_slack_bolt_types", True)]


def lacking(kind: str, ours: Json, *, optional: frozenset[str] = frozenset()) -> set[str]:
    found = {path for sample in samples(kind) for path in missing(sample, ours)}
    return {path for path in found if path.rsplit("/", 1)[-1] not in optional}


def test_a_command_has_every_key_of_the_recorded_ones(sandbox: SlackSandbox) -> None:
    payload = sandbox.people.command("ana", "ops", "/test hello").payload
    assert lacking("slash_command", payload) == set()


def test_a_click_has_every_key_of_the_recorded_ones(sandbox: SlackSandbox, web: WebClient) -> None:
    ts = web.chat_postMessage(channel="C0OPS", text="x", blocks=BLOCKS)["ts"]
    click = sandbox.people.click("ana", "ops", ts, "a")
    assert click.envelope is not None
    assert lacking("block_actions", click.envelope.payload, optional=frozenset({"emoji"})) == set()
    assert click.envelope.payload["message"]["ts"] == ts


def test_a_submitted_view_has_every_key_of_the_recorded_ones(sandbox: SlackSandbox, web: WebClient) -> None:
    ana = sandbox.workspace.find_user("ana")
    assert ana is not None
    view = web.views_open(trigger_id=sandbox.tickets.new_trigger(ana.id), view=VIEW)["view"]
    payload = sandbox.people.submit_view("ana", view["id"], {"hspI": {"maBWU": {"value": "test"}}}).payload
    optional = frozenset({"emoji", "dispatch_action", "dispatch_action_config"})
    assert lacking("view_submission", payload, optional=optional) == set()


def test_events_have_every_key_of_the_recorded_ones(sandbox: SlackSandbox) -> None:
    sandbox.people.mention("ana", "ops", "hey")
    message = sandbox.people.say("ana", "ops", "original")
    sandbox.people.edit_message_behind_the_bot("ops", message.ts, "updated")
    sandbox.people.delete_message("ops", message.ts)
    by_kind = {
        (e.payload["event"]["type"], e.payload["event"].get("subtype")): e.payload for e in sandbox.people.envelopes
    }
    shared_channel = frozenset({"user_team", "source_team", "user_profile"})
    assert lacking("event_callback:app_mention", by_kind["app_mention", None], optional=shared_channel) == set()
    for subtype in ("message_changed", "message_deleted"):
        ours = by_kind["message", subtype]
        assert lacking(f"event_callback:message/{subtype}", ours, optional=frozenset({"blocks"})) == set()


def test_answers_have_every_key_that_the_reference_requires(sandbox: SlackSandbox, web: WebClient) -> None:
    ana = sandbox.workspace.find_user("ana")
    assert ana is not None
    group = sandbox.workspace.add_group("approvers", [ana.id])
    ts = web.chat_postMessage(channel="C0OPS", text="x")["ts"]
    here = {"channel": "C0OPS"}
    calls: list[tuple[str, Json]] = [
        ("auth.test", {}),
        ("chat.postMessage", here | {"text": "y", "thread_ts": ts}),
        ("chat.update", here | {"ts": ts, "text": "z"}),
        ("chat.postEphemeral", here | {"user": ana.id, "text": "psst"}),
        ("chat.getPermalink", here | {"message_ts": ts}),
        ("conversations.replies", here | {"ts": ts}),
        ("conversations.history", here),
        ("conversations.info", here | {"include_num_members": True}),
        ("conversations.open", {"users": ana.id, "return_im": True}),
        ("users.info", {"user": ana.id}),
        ("usergroups.list", {"include_users": True, "include_count": True}),
        ("usergroups.users.list", {"usergroup": group.id}),
        ("views.open", {"trigger_id": sandbox.tickets.new_trigger(ana.id), "view": VIEW}),
        ("chat.delete", here | {"ts": ts}),
    ]
    for method, args in calls:
        reference = json.loads((shared("slack") / f"method-ref/{method}.json").read_text())
        answer = web.api_call(method, json=args)
        absent = set((reference.get("output") or {}).get("required") or ()) - set(answer.data)
        assert (method, absent) == (method, set())
    assert sandbox.workspace.violations == []


@pytest.mark.parametrize("name", ["users.info", "usergroups.list", "usergroups.users.list", "auth.test"])
def test_every_key_of_an_answer_is_one_that_was_recorded(sandbox: SlackSandbox, web: WebClient, name: str) -> None:
    recorded = json.loads((shared("slack") / f"payload-samples/java-api-{name}.json").read_text())
    group = sandbox.workspace.add_group("approvers", [])
    args = {"users.info": {"user": sandbox.workspace.app.bot_user}, "usergroups.users.list": {"usergroup": group.id}}
    answer = web.api_call(name, json=args.get(name, {})).data
    assert isinstance(answer, dict)
    assert set(answer) <= set(recorded)
    for key in ("user", "usergroups"):
        if key in answer and isinstance(answer[key], (dict, list)):
            ours = answer[key] if isinstance(answer[key], dict) else answer[key][0]
            theirs = recorded[key] if isinstance(recorded[key], dict) else recorded[key][0]
            assert set(ours) <= set(theirs)


def test_a_typed_message_carries_entities_and_rich_text(sandbox: SlackSandbox) -> None:
    message = sandbox.people.mention("ana", "ops", "A & B <x>")
    bot = sandbox.workspace.app.bot_user
    assert message.text == f"<@{bot}> A &amp; B &lt;x&gt;"
    assert message.blocks[0]["elements"][0]["elements"] == [
        {"type": "user", "user_id": bot},
        {"type": "text", "text": " A & B <x>"},
    ]
