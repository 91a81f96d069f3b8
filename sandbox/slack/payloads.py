"""What the workspace sends to the app: interaction and event bodies, and the text a client makes of typed words."""

from __future__ import annotations

import re
import secrets
import time

from sandbox.slack.errors import PersonError
from sandbox.slack.methods import shape
from sandbox.slack.records import Blocks, Channel, Happening, Json, Message, User
from sandbox.slack.workspace import Workspace

VERIFICATION = "sandbox-verification"


def command_text(workspace: Workspace, text: str) -> str:
    """What a slash command carries: entities always, names as ids with `should_escape`."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return linked(workspace, text, with_names=True) if workspace.app.should_escape else text


def typed_text(workspace: Workspace, text: str) -> str:
    """What a client stores of a typed message: entities, and ids in the places of names."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"&lt;([@#!][\w^|-]+)&gt;", r"<\1>", text)
    return linked(workspace, text)


def rich_text(text: str) -> Blocks:
    """The rich_text block that a client sends beside the text."""
    inner: list[Json] = []
    for part in re.split(r"(<@\w+>)", text):
        if part.startswith("<@"):
            inner.append({"type": "user", "user_id": part[2:-1]})
        elif part:
            plain = part.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
            inner.append({"type": "text", "text": plain})
    return [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": inner}]}]


def linked(workspace: Workspace, text: str, *, with_names: bool = False) -> str:
    """`@name` and `#name` of known people, groups and channels as the client links them."""

    def person(match: re.Match[str]) -> str:
        name = match[1]
        user = workspace.find_user(name)
        if user is not None:
            return f"<@{user.id}|{user.name}>" if with_names else f"<@{user.id}>"
        group = next((g for g in workspace.groups.values() if g.handle == name), None)
        return f"<!subteam^{group.id}|@{group.handle}>" if group else match[0]

    def place(match: re.Match[str]) -> str:
        channel = workspace.find_channel(match[1])
        return f"<#{channel.id}|{channel.name}>" if channel else match[0]

    text = re.sub(r"(?<![\w<])@([\w.-]+)", person, text)
    return re.sub(r"(?<![\w<])#([\w-]+)", place, text)


def interaction(workspace: Workspace, kind: str, user: User, trigger_id: str) -> Json:
    """The keys that block_actions and view_submission share."""
    return {
        "type": kind,
        "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": user.team_id},
        "api_app_id": workspace.app.app_id,
        "token": VERIFICATION,
        "trigger_id": trigger_id,
        "team": {"id": workspace.team_id, "domain": workspace.domain},
        "enterprise": None,
        "is_enterprise_install": False,
    }


def event_callback(workspace: Workspace, event: Json) -> Json:
    """An Events API body around an event, with a fresh event_id."""
    return {
        "token": VERIFICATION,
        "team_id": workspace.team_id,
        "api_app_id": workspace.app.app_id,
        "event": event,
        "type": "event_callback",
        "event_id": "Ev" + secrets.token_hex(5).upper(),
        "event_time": int(time.time()),
        "authorizations": [
            {
                "enterprise_id": None,
                "team_id": workspace.team_id,
                "user_id": workspace.app.bot_user,
                "is_bot": True,
                "is_enterprise_install": False,
            }
        ],
        "is_ext_shared_channel": False,
        "event_context": "4-" + secrets.token_hex(6),
    }


def message_event(workspace: Workspace, channel: Channel, happening: Happening) -> Json:
    """The `message` event of a post, an edit or a deletion."""
    kind = {"im": "im", "groups": "group"}.get(channel.kind, "channel")
    shown = shape(workspace, happening.message)
    if happening.before is None:
        return shown | {"channel": channel.id, "event_ts": shown["ts"], "channel_type": kind}
    ts = workspace.new_ts()
    event: Json = {"type": "message", "subtype": happening.subtype, "channel": channel.id, "channel_type": kind}
    event |= {"ts": ts, "event_ts": ts, "hidden": True, "previous_message": shape(workspace, happening.before)}
    if happening.subtype == "message_deleted":
        return event | {"deleted_ts": happening.message.ts}
    return event | {"message": shown}


def file_shared(message: Message, file: str) -> Json:
    """The `file_shared` event of one file of a message."""
    keys: Json = {"channel_id": message.channel, "file_id": file, "user_id": message.user, "file": {"id": file}}
    return {"type": "file_shared", "event_ts": message.ts} | keys


def choice(element: Json, value: str | None) -> Json:
    """What a menu reports about the chosen option. Raises: PersonError for a value that is not offered."""
    options = [*element.get("options", ())]
    for group in element.get("option_groups", ()):
        options.extend(group.get("options", ()))
    chosen = next((option for option in options if option.get("value") == value), None)
    if chosen is None:
        raise PersonError(f"{value!r} is not an option, there are {[o.get('value') for o in options]}")
    many = element["type"] == "checkboxes" or element["type"].startswith("multi_")
    return {"selected_options": [chosen]} if many else {"selected_option": chosen}
