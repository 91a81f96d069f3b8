"""conversations.*, users.*, usergroups.*: reading the workspace."""

from __future__ import annotations

import base64
import binascii

from sandbox.slack.errors import SlackError
from sandbox.slack.methods import TS, Request, method, shape
from sandbox.slack.records import Channel, Json, Message, User


def _bounds(request: Request) -> tuple[float, float]:
    made: list[float] = []
    for name, default in (("oldest", "0"), ("latest", "9999999999")):
        text = request.text(name, default) or default
        try:
            made.append(float(text))
        except ValueError:
            raise SlackError(f"invalid_ts_{name}") from None
    return made[0], made[1]


def _inside(request: Request, messages: list[Message]) -> list[Message]:
    """Messages between oldest and latest; the bounds themselves only with `inclusive`."""
    low, high = _bounds(request)
    inclusive = request.flag("inclusive")
    return [
        m
        for m in messages
        if low < float(m.ts) < high or (inclusive and float(m.ts) in {low, high}) or (low == 0 and high > 9e9)
    ]


def _page(request: Request, messages: list[Message], *, default: int, newest_first: bool) -> Json:
    """One page by cursor and limit; a cursor names the last message that was shown."""
    limit = request.number("limit", default, highest=1000)
    if cursor := request.text("cursor"):
        try:
            kind, last = base64.b64decode(cursor, validate=True).decode().split(":")
            seen = float(last)
        except (binascii.Error, UnicodeDecodeError, ValueError):
            raise SlackError("invalid_cursor") from None
        if kind != "next_ts":
            raise SlackError("invalid_cursor")
        messages = [m for m in messages if (float(m.ts) < seen if newest_first else float(m.ts) > seen)]
    shown, more = messages[:limit], len(messages) > limit
    with_metadata = request.flag("include_all_metadata")
    answer: Json = {
        "messages": [shape(request.workspace, m, with_metadata=with_metadata) for m in shown],
        "has_more": more,
    }
    if more:
        cursor = base64.b64encode(f"next_ts:{shown[-1].ts}".encode()).decode()
        answer["response_metadata"] = {"next_cursor": cursor}
    return answer


@method("conversations.replies")
def replies(request: Request) -> Json:
    """A thread: its parent first, then the replies, oldest first."""
    channel = request.channel(scope="history", must_be_in=True)
    wanted = request.text("ts")
    message = request.workspace.message(channel.id, wanted) if TS.fullmatch(wanted) else None
    if message is None:
        raise SlackError("thread_not_found")
    parent_ts = message.thread_ts or message.ts
    parent = request.workspace.message(channel.id, parent_ts)
    found = _inside(request, request.workspace.replies(channel.id, parent_ts))
    if parent is not None:
        found = [parent, *found]
    return _page(request, found, default=1000, newest_first=False)


@method("conversations.history")
def history(request: Request) -> Json:
    """A channel, newest first, without replies that were not broadcast."""
    channel = request.channel(scope="history", must_be_in=True)
    shown = [
        m
        for m in request.workspace.visible(channel.id)
        if m.thread_ts in {None, m.ts} or m.broadcast
    ]  # fmt: skip
    answer = _page(request, _inside(request, shown)[::-1], default=100, newest_first=True)
    return answer | {"pin_count": 0, "channel_actions_ts": None, "channel_actions_count": 0}


def _channel(request: Request, channel: Channel) -> Json:
    bot = request.workspace.app.bot_user
    if channel.kind == "im":
        return {"id": channel.id, "is_im": True, "user": channel.im_with, "is_archived": channel.is_archived}
    made: Json = {
        "id": channel.id,
        "name": channel.name,
        "name_normalized": channel.name,
        "is_channel": not channel.is_private,
        "is_group": channel.is_private,
        "is_im": False,
        "is_mpim": False,
        "is_private": channel.is_private,
        "is_archived": channel.is_archived,
        "is_general": False,
        "is_member": bot in channel.members,
        "is_shared": channel.is_ext_shared or channel.is_org_shared,
        "is_ext_shared": channel.is_ext_shared,
        "is_org_shared": channel.is_org_shared,
        "context_team_id": request.workspace.team_id,
        "created": 1_600_000_000,
        "creator": bot,
    }
    if request.flag("include_num_members"):
        made["num_members"] = len(channel.members)
    return made


@method("conversations.info")
def info(request: Request) -> Json:
    """What a channel is."""
    return {"channel": _channel(request, request.channel(scope="read"))}


@method("conversations.open", scope="im:write")
def open_conversation(request: Request) -> Json:
    """Open the direct message with one person."""
    if request.text("channel"):
        return {"channel": {"id": request.channel().id}}
    names = [name for name in request.text("users").split(",") if name]
    if not names:
        raise SlackError("users_list_not_supplied")
    if len(names) > 1:
        raise SlackError("method_not_supported_for_channel_type")
    user = request.workspace.users.get(names[0])
    if user is None:
        raise SlackError("user_not_found")
    if user.deleted:
        raise SlackError("user_disabled")
    channel = request.workspace.open_im(user.id)
    return {"channel": {"id": channel.id} | ({"is_im": True, "user": user.id} if request.flag("return_im") else {})}


def user_shape(request: Request, user: User) -> Json:
    """A user as users.info shows it."""
    made: Json = {
        "id": user.id,
        "team_id": user.team_id,
        "name": user.name,
        "real_name": user.name.title(),
        "deleted": user.deleted,
        "tz": user.tz,
        "tz_label": user.tz,
        "tz_offset": 0,
        "is_bot": user.is_bot,
        "is_app_user": False,
        "updated": 1_600_000_000,
        "profile": {"real_name": user.name.title(), "display_name": user.name, "team": user.team_id},
    }
    if not user.deleted:
        made |= {
            "is_admin": user.is_admin,
            "is_owner": False,
            "is_primary_owner": False,
            "is_restricted": user.is_restricted or user.is_ultra_restricted,
            "is_ultra_restricted": user.is_ultra_restricted,
        }
    if user.team_id != request.workspace.team_id:
        made["is_stranger"] = True
    return made


@method("users.info", scope="users:read", per_minute=100)
def users_info(request: Request) -> Json:
    """Who somebody is."""
    return {"user": user_shape(request, request.user())}


@method("usergroups.list", scope="usergroups:read", per_minute=20)
def usergroups_list(request: Request) -> Json:
    """All user groups."""
    _need_plan(request)
    made: list[Json] = []
    for group in request.workspace.groups.values():
        if group.disabled and not request.flag("include_disabled"):
            continue
        entry: Json = {
            "id": group.id,
            "team_id": request.workspace.team_id,
            "is_usergroup": True,
            "is_external": False,
            "name": group.name,
            "handle": group.handle,
            "description": "",
            "date_delete": 1_600_000_001 if group.disabled else 0,
        }
        if request.flag("include_users"):
            entry["users"] = list(group.users)
        if request.flag("include_count"):
            entry["user_count"] = str(len(group.users))
        made.append(entry)
    return {"usergroups": made}


@method("usergroups.users.list", scope="usergroups:read", per_minute=20)
def usergroup_users(request: Request) -> Json:
    """The members of a user group."""
    _need_plan(request)
    group = request.workspace.groups.get(request.text("usergroup"))
    if group is None or (group.disabled and not request.flag("include_disabled")):
        raise SlackError("no_such_subteam")
    return {"users": list(group.users)}


def _need_plan(request: Request) -> None:
    if not request.workspace.plan_has_usergroups:
        raise SlackError("plan_upgrade_required")
