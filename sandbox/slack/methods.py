"""The table of Web API methods: what each needs, and the context its handler gets."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sandbox.slack.errors import SlackError
from sandbox.slack.records import Blocks, Channel, Json, Message, User, Violation
from sandbox.slack.workspace import Workspace

if TYPE_CHECKING:
    from sandbox.slack.oracle import Oracle
    from sandbox.slack.responses import Tickets

TS = re.compile(r"\d{10}\.\d{6}")


@dataclass(slots=True)
class Request:
    """One call of a method: its arguments (decoded JSON), and everything a handler may use.

    `fault` is the kind of the one that is switched on for this call, or "".
    """

    method: str
    args: Json
    workspace: Workspace
    oracle: Oracle
    tickets: Tickets
    fault: str = ""

    def text(self, name: str, default: str = "") -> str:
        """An argument as a string."""
        value = self.args.get(name)
        return default if value is None else str(value)

    def flag(self, name: str) -> bool:
        """A boolean argument in any of its spellings."""
        return str(self.args.get(name)) in {"True", "true", "1"}

    def number(self, name: str, default: int, *, highest: int) -> int:
        """A count argument, bounded."""
        try:
            value = int(self.args.get(name, default))
        except (TypeError, ValueError):
            raise SlackError("invalid_arguments") from None
        if not 1 <= value <= highest:
            raise SlackError("invalid_limit")
        return value

    def violation(self, code: str, message: str, pointer: str = "") -> None:
        """Remember a mistake of the app."""
        self.workspace.record_violation(Violation(self.method, code, message, pointer))

    def need_scope(self, scope: str) -> None:
        """Raise `missing_scope` unless the app was granted it."""
        granted = self.workspace.app.scopes
        if scope not in granted:
            raise SlackError("missing_scope", needed=scope, provided=",".join(sorted(granted)))

    def channel(self, *, scope: str = "", must_be_in: bool = False) -> Channel:
        """The addressed channel as the bot may see it.

        A private channel without the bot does not exist for it (`channel_not_found`); a public one is
        `not_in_channel` where membership counts. `scope` is `history` or `read`, per kind of channel.
        """
        wanted = self.text("channel")
        found = self.workspace.channels.get(wanted)
        bot = self.workspace.app.bot_user
        if found is None or (found.kind != "channels" and bot not in found.members):
            raise SlackError("channel_not_found")
        if scope:
            self.need_scope(f"{found.kind}:{scope}")
        if must_be_in and bot not in found.members:
            raise SlackError("not_in_channel")
        return found

    def user(self, name: str = "user") -> User:
        """The addressed user, or `user_not_found`."""
        found = self.workspace.users.get(self.text(name))
        if found is None:
            raise SlackError("user_not_found")
        return found

    def message_at(self, channel: Channel, name: str) -> Message:
        """The addressed message, or `message_not_found`."""
        found = self.workspace.message(channel.id, self.text(name))
        if found is None:
            raise SlackError("message_not_found")
        return found

    def blocks(self) -> Blocks:
        """The blocks argument, already judged by the oracle."""
        value = self.args.get("blocks")
        return value if isinstance(value, list) else []


Handler = Callable[[Request], Json]


@dataclass(frozen=True, slots=True)
class Method:
    """A Web API method: handler, needed scope, kind of token, calls a minute when rate limits are on."""

    name: str
    handler: Handler
    scope: str = ""
    token: str = "bot"  # noqa: S105 - a kind of token, or "none"
    per_minute: int = 50


METHODS: dict[str, Method] = {}


def method(
    name: str,
    *,
    scope: str = "",
    token: str = "bot",  # noqa: S107 - a kind of token
    per_minute: int = 50,
) -> Callable[[Handler], Handler]:
    """Register a handler."""

    def register(handler: Handler) -> Handler:
        METHODS[name] = Method(name, handler, scope, token, per_minute)
        return handler

    return register


def shape(workspace: Workspace, message: Message, *, with_metadata: bool = False) -> Json:
    """A message as the Web API and payloads show it."""
    made: Json = {
        "type": "message",
        "user": message.user,
        "text": message.text,
        "ts": message.ts,
        "team": workspace.team_id,
    }
    if message.bot_id:
        made |= {"bot_id": message.bot_id, "app_id": workspace.app.app_id}
    for key in ("blocks", "attachments", "thread_ts", "edited"):
        if value := getattr(message, key):
            made[key] = value
    if message.files:
        shown = [workspace.files.shown(file) for file in message.files]
        made |= {"files": shown, "upload": message.bot_id is not None, "display_as_bot": False}
        made["subtype"] = "file_share"
    if message.broadcast:
        made["subtype"] = "thread_broadcast"
    if with_metadata and message.metadata:
        made["metadata"] = message.metadata
    if message.reactions:
        made["reactions"] = [
            {"name": name, "users": users, "count": len(users)} for name, users in message.reactions.items()
        ]
    replies = workspace.replies(message.channel, message.ts)
    if replies:
        made |= {
            "thread_ts": message.ts,
            "reply_count": len(replies),
            "reply_users_count": len({m.user for m in replies}),
            "reply_users": sorted({m.user for m in replies}),
            "latest_reply": replies[-1].ts,
        }
    return made
