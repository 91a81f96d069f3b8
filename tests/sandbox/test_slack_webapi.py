"""The stand-in's Web API through the real slack_sdk client: state, errors, threads, metadata, pagination."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.webhook import WebhookClient

from sandbox.slack import SlackSandbox
from sandbox.slack.records import Channel, Json, User
from tests.shared import shared


class Room:
    """A running workspace with ana, ben and a channel of both and the bot."""

    def __init__(self, sandbox: SlackSandbox) -> None:
        self.sandbox = sandbox
        self.workspace = sandbox.workspace
        self.ana: User = self.workspace.add_user("ana")
        self.ben: User = self.workspace.add_user("ben")
        self.ops: Channel = self.workspace.add_channel("ops", [self.ana.id, self.ben.id])
        self.client = WebClient(sandbox.bot_token, base_url=sandbox.base_url)

    def error(self, method: str, **args: Any) -> str:
        with pytest.raises(SlackApiError) as caught:
            self.client.api_call(method, json=args)
        return str(caught.value.response["error"])

    def post(self, text: str = "x", **args: Any) -> str:
        return str(self.client.chat_postMessage(channel=self.ops.id, text=text, **args)["ts"])


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Iterator[Room]:
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    with SlackSandbox(reference=shared("slack")) as sandbox:
        yield Room(sandbox)


def test_a_token_decides_who_is_calling(room: Room) -> None:
    assert room.client.auth_test()["user_id"] == room.workspace.app.bot_user
    for token, method, error in (
        ("", "auth.test", "not_authed"),
        ("xoxb-wrong", "auth.test", "invalid_auth"),
        (room.sandbox.app_token, "chat.postMessage", "not_allowed_token_type"),
        (room.sandbox.bot_token, "apps.connections.open", "not_allowed_token_type"),
    ):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = httpx.post(room.sandbox.base_url + method, headers=headers, trust_env=False).json()
        assert (method, answer["error"]) == (method, error)
    room.workspace.app.token_error = "token_revoked"
    assert room.error("auth.test") == "token_revoked"


def test_a_missing_scope_is_named_with_what_was_granted(room: Room) -> None:
    room.workspace.app.scopes = {"chat:write"}
    with pytest.raises(SlackApiError) as caught:
        room.client.users_info(user=room.ana.id)
    assert caught.value.response["error"] == "missing_scope"
    assert caught.value.response["needed"] == "users:read"
    assert caught.value.response["provided"] == "chat:write"
    assert room.error("conversations.history", channel=room.ops.id) == "missing_scope"


def test_form_query_and_json_bodies_say_the_same(room: Room) -> None:
    headers = {"Authorization": f"Bearer {room.sandbox.bot_token}"}
    args = {"channel": room.ops.id, "text": "x", "blocks": '[{"type": "divider"}]'}
    url = room.sandbox.base_url + "chat.postMessage"
    answers = [
        httpx.post(url, data=args, headers=headers, trust_env=False).json(),
        httpx.get(url, params=args, headers=headers, trust_env=False).json(),
        httpx.post(url, json=args, headers=headers, trust_env=False).json(),
    ]
    assert [answer["message"]["blocks"][0]["type"] for answer in answers] == ["divider"] * 3
    bad = httpx.post(url, data=args | {"blocks": "[{"}, headers=headers, trust_env=False).json()
    assert bad["error"] == "invalid_blocks_format"


def test_channels_are_hidden_closed_or_archived(room: Room) -> None:
    public = room.workspace.add_channel("public", with_bot=False)
    private = room.workspace.add_channel("private", is_private=True, with_bot=False)
    assert room.error("chat.postMessage", channel="C404", text="x") == "channel_not_found"
    assert room.error("chat.postMessage", channel=private.id, text="x") == "channel_not_found"
    assert room.error("chat.postMessage", channel=public.id, text="x") == "not_in_channel"
    assert room.client.conversations_info(channel=public.id)["channel"]["is_member"] is False
    room.workspace.app.scopes.add("chat:write.public")
    assert room.client.chat_postMessage(channel=public.id, text="x")["ok"]
    room.ops.is_archived = True
    assert room.error("chat.postMessage", channel=room.ops.id, text="x") == "is_archived"


def test_timestamps_are_strings_unique_and_in_order(room: Room) -> None:
    made = [room.post(str(n)) for n in range(20)]
    assert made == sorted(set(made))
    assert all(len(ts) == 17 and ts[10] == "." for ts in made)


def test_metadata_is_returned_on_request_kept_by_an_update_and_removed_by_an_empty_object(room: Room) -> None:
    metadata = {"event_type": "plan", "event_payload": {"plan": "C-1", "seq": 3}}
    ts = room.post(metadata=metadata)

    def seen(**args: Any) -> Any:
        return room.client.conversations_replies(channel=room.ops.id, ts=ts, **args)["messages"][0].get("metadata")

    assert seen() is None
    assert seen(include_all_metadata=True) == metadata
    room.client.chat_update(channel=room.ops.id, ts=ts, text="y")
    assert seen(include_all_metadata=True) == metadata
    room.client.chat_update(channel=room.ops.id, ts=ts, text="y", metadata={})
    assert seen(include_all_metadata=True) is None


@pytest.mark.parametrize("limit", [1, 2, 7, 100])
def test_replies_are_paged_oldest_first_and_history_newest_first(room: Room, limit: int) -> None:
    parent = room.post("parent")
    replies = [room.post(f"r{n}", thread_ts=parent) for n in range(6)]
    others = [room.post(f"o{n}") for n in range(4)]

    def pages(method: str, **args: Any) -> list[str]:
        found: list[str] = []
        cursor = ""
        for _ in range(20):
            answer = room.client.api_call(
                method,
                http_verb="GET",
                params={"channel": room.ops.id, "limit": limit, **args} | ({"cursor": cursor} if cursor else {}),
            )
            page: list[Json] = answer["messages"]
            assert len(page) <= limit
            found += [message["ts"] for message in page]
            cursor = (answer.get("response_metadata") or {}).get("next_cursor", "")
            assert answer["has_more"] is bool(cursor)
            if not cursor:
                return found
        pytest.fail("the pages never end")

    assert pages("conversations.replies", ts=parent) == [parent, *replies]
    assert pages("conversations.history") == [*reversed(others), parent]
    assert pages("conversations.replies", ts=parent, oldest=replies[3]) == [parent, *replies[4:]]
    assert room.error("conversations.history", channel=room.ops.id, cursor="nonsense") == "invalid_cursor"


def test_a_reply_to_a_deleted_parent_lands_in_the_channel_without_an_error(room: Room) -> None:
    parent = room.post("parent")
    room.sandbox.people.delete_message("ops", parent)
    answer = room.client.chat_postMessage(channel=room.ops.id, text="late", thread_ts=parent)
    assert answer["ok"] is True
    assert "thread_ts" not in answer["message"]
    assert room.error("conversations.replies", channel=room.ops.id, ts=parent) == "thread_not_found"
    assert [m["text"] for m in room.client.conversations_history(channel=room.ops.id)["messages"]] == ["late"]


def test_only_the_bots_own_messages_can_be_updated_or_deleted(room: Room) -> None:
    theirs = room.sandbox.people.say("ana", "ops", "mine").ts
    assert room.error("chat.update", channel=room.ops.id, ts=theirs, text="x") == "cant_update_message"
    assert room.error("chat.delete", channel=room.ops.id, ts=theirs) == "cant_delete_message"
    assert room.error("chat.update", channel=room.ops.id, ts="1690000000.000100", text="x") == "message_not_found"
    ours = room.post()
    assert room.client.chat_delete(channel=room.ops.id, ts=ours)["ts"] == ours
    assert room.error("chat.update", channel=room.ops.id, ts=ours, text="x") == "message_not_found"


def test_an_ephemeral_message_has_one_reader_and_no_history(room: Room) -> None:
    ts = room.client.chat_postEphemeral(channel=room.ops.id, user=room.ana.id, text="psst")["message_ts"]
    assert room.client.conversations_history(channel=room.ops.id)["messages"] == []
    assert [line["text"] for line in room.sandbox.people.transcript("ops", seen_by="ana")] == ["psst"]
    assert room.sandbox.people.transcript("ops", seen_by="ben") == []
    assert room.error("chat.update", channel=room.ops.id, ts=ts, text="x") == "message_not_found"
    stranger = room.workspace.add_user("eve")
    args = {"channel": room.ops.id, "user": stranger.id, "text": "x"}
    assert room.error("chat.postEphemeral", **args) == "user_not_in_channel"


def test_users_and_groups_are_shown_with_what_a_policy_asks_for(room: Room) -> None:
    guest = room.workspace.add_user("gus", is_ultra_restricted=True)
    stranger = room.workspace.add_user("sue", team_id="T0OTHER")
    room.ben.deleted = True
    shown = {u.name: room.client.users_info(user=u.id)["user"] for u in (room.ana, room.ben, guest, stranger)}
    assert shown["ana"]["deleted"] is False
    assert shown["ben"]["deleted"] is True
    assert (shown["gus"]["is_restricted"], shown["gus"]["is_ultra_restricted"]) == (True, True)
    assert (shown["sue"]["team_id"], shown["sue"]["is_stranger"]) == ("T0OTHER", True)
    assert room.error("users.info", user="U404") == "user_not_found"
    group = room.workspace.add_group("approvers", [room.ana.id])
    assert room.client.usergroups_users_list(usergroup=group.id)["users"] == [room.ana.id]
    assert room.client.usergroups_list(include_users=True)["usergroups"][0]["users"] == [room.ana.id]
    assert room.error("usergroups.users.list", usergroup="S404") == "no_such_subteam"
    room.workspace.plan_has_usergroups = False
    assert room.error("usergroups.users.list", usergroup=group.id) == "plan_upgrade_required"


def test_a_direct_message_opens_by_user_id(room: Room) -> None:
    channel = room.client.chat_postMessage(channel=room.ana.id, text="hello")["channel"]
    assert channel.startswith("D")
    assert room.client.conversations_open(users=room.ana.id)["channel"]["id"] == channel
    assert room.error("conversations.open", users="U404") == "user_not_found"


def test_reactions_and_permalinks_name_the_message(room: Room) -> None:
    parent = room.post()
    reply = room.post(thread_ts=parent)
    room.client.reactions_add(channel=room.ops.id, timestamp=parent, name="eyes")
    args = {"channel": room.ops.id, "timestamp": parent, "name": "eyes"}
    assert room.error("reactions.add", **args) == "already_reacted"
    link = room.client.chat_getPermalink(channel=room.ops.id, message_ts=reply)["permalink"]
    assert link.endswith(f"/archives/{room.ops.id}/p{reply.replace('.', '')}?thread_ts={parent}&cid={room.ops.id}")


def test_a_trigger_opens_one_view_within_three_seconds(room: Room) -> None:
    view = {"type": "modal", "title": {"type": "plain_text", "text": "t"},
            "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": "x"}}]}  # fmt: skip
    trigger = room.sandbox.tickets.new_trigger(room.ana.id)
    assert room.client.views_open(trigger_id=trigger, view=view)["view"]["id"] in room.workspace.views
    assert room.error("views.open", trigger_id=trigger, view=view) == "exchanged_trigger_id"
    late = room.sandbox.tickets.new_trigger(room.ana.id)
    room.sandbox.tickets.age(seconds=3.1)
    assert room.error("views.open", trigger_id=late, view=view) == "expired_trigger_id"
    assert room.error("views.open", trigger_id="1.2.abc", view=view) == "invalid_trigger_id"


def test_a_response_url_takes_five_posts_within_thirty_minutes(room: Room) -> None:
    url = room.sandbox.tickets.new_response_url("commands", room.ops.id, room.ana.id)
    hook = WebhookClient(url)
    assert [hook.send(text=str(n)).status_code for n in range(6)] == [200] * 5 + [404]
    assert [line["ephemeral_to"] for line in room.sandbox.people.transcript("ops")] == [room.ana.id] * 5
    shown = WebhookClient(room.sandbox.tickets.new_response_url("commands", room.ops.id, room.ana.id))
    shown.send(text="to all", response_type="in_channel")
    assert room.sandbox.people.transcript("ops")[-1]["ephemeral_to"] is None
    late = WebhookClient(room.sandbox.tickets.new_response_url("commands", room.ops.id, room.ana.id))
    room.sandbox.tickets.age(seconds=1801)
    assert "expired_url" in late.send(text="x").body
    assert room.workspace.violations == []


def test_only_the_clicked_message_can_be_replaced_or_deleted(room: Room) -> None:
    command = WebhookClient(room.sandbox.tickets.new_response_url("commands", room.ops.id, room.ana.id))
    assert '"ok":false' in command.send(text="x", replace_original=True).body
    assert [v.code for v in room.workspace.violations] == ["no_original"]
    message = room.workspace.message(room.ops.id, room.post("before"))
    hook = WebhookClient(room.sandbox.tickets.new_response_url("actions", room.ops.id, room.ana.id, message))
    hook.send(text="after", replace_original=True)
    assert [line["text"] for line in room.sandbox.people.transcript("ops")] == ["after"]
    hook.send(delete_original=True)
    assert room.sandbox.people.transcript("ops") == []


def test_only_loopback_can_be_listened_on() -> None:
    with pytest.raises(ValueError, match="only a loopback address"):
        SlackSandbox().start(host="0.0.0.0")
