"""The state of the stand-in workspace: thread-safe, in memory, without any HTTP."""

from __future__ import annotations

import copy
import itertools
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sandbox.slack.filestore import FileStore, Share, StoredFile
from sandbox.slack.records import Blocks, Call, Channel, Envelope, Happening, Json, Message, User, Usergroup, Violation

DEFAULT_SCOPES = frozenset({
    "commands", "chat:write", "channels:read", "channels:history", "groups:read", "groups:history",
    "im:history", "im:read", "im:write", "users:read", "usergroups:read", "files:write", "files:read",
    "reactions:write", "app_mentions:read",
})  # fmt: skip
DEFAULT_EVENTS = frozenset({
    "app_home_opened", "app_mention", "message.im", "user_change", "subteam_members_changed", "channel_archive",
})  # fmt: skip


@dataclass(slots=True)
class AppRecord:
    """The one installed app: its ids, tokens, granted scopes and event subscriptions."""

    app_id: str = "A0CLAWBACK"
    bot_id: str = "B0CLAWBACK"
    bot_user: str = "U0CLAWBACK"
    name: str = "clawback"
    bot_token: str = field(default_factory=lambda: "xoxb-" + secrets.token_hex(12), repr=False)
    app_token: str = field(default_factory=lambda: "xapp-1-A0CLAWBACK-" + secrets.token_hex(12), repr=False)
    scopes: set[str] = field(default_factory=lambda: set(DEFAULT_SCOPES))
    events: set[str] = field(default_factory=lambda: set(DEFAULT_EVENTS))
    should_escape: bool = True
    token_error: str | None = None
    """When set (`token_revoked`, `account_inactive`, `invalid_auth`), every call is answered with it."""


class Workspace:
    """Users, groups, channels and messages of one team, plus the record of what the app did to it."""

    def __init__(self, *, team_id: str = "T0SANDBOX", domain: str = "sandbox") -> None:
        self.team_id = team_id
        self.domain = domain
        self.app = AppRecord()
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.users: dict[str, User] = {}
        self.groups: dict[str, Usergroup] = {}
        self.channels: dict[str, Channel] = {}
        self.messages: list[Message] = []
        self.views: dict[str, Json] = {}
        self.calls: list[Call] = []
        self.envelopes: list[Envelope] = []
        self.violations: list[Violation] = []
        self.files = FileStore(self.new_id, team_id)
        self.plan_has_usergroups = True
        self.on_message: Callable[[Happening], None] | None = None
        self._numbers = itertools.count(1)
        self._last_us = 0
        self.add_user(self.app.name, user_id=self.app.bot_user, is_bot=True)

    # ids and time

    def new_id(self, prefix: str) -> str:
        """A fresh id such as `U0000001A`."""
        with self.lock:
            return f"{prefix}{next(self._numbers):08X}"

    def new_ts(self) -> str:
        """A message timestamp: a string, unique, never before an earlier one."""
        with self.lock:
            self._last_us = max(time.time_ns() // 1000, self._last_us + 1)
            return f"{self._last_us // 1_000_000}.{self._last_us % 1_000_000:06d}"

    @contextmanager
    def change(self) -> Iterator[None]:
        """Hold the lock, then wake everybody who waits for a change."""
        with self.changed:
            yield
            self.changed.notify_all()

    def wait_for(self, predicate: Callable[[], object], timeout_s: float = 30.0) -> bool:
        """Wait until the predicate holds; False when the time is over."""
        deadline = time.monotonic() + timeout_s
        with self.changed:
            while not predicate():
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self.changed.wait(min(left, 0.25))
            return True

    # people

    def add_user(
        self,
        name: str,
        *,
        user_id: str | None = None,
        is_bot: bool = False,
        is_restricted: bool = False,
        is_ultra_restricted: bool = False,
        is_admin: bool = False,
        team_id: str | None = None,
        tz: str = "Etc/UTC",
    ) -> User:
        """A new person; a foreign `team_id` makes a stranger of a shared channel."""
        with self.change():
            user = User(
                id=user_id or self.new_id("U"),
                name=name,
                team_id=team_id or self.team_id,
                is_bot=is_bot,
                is_restricted=is_restricted,
                is_ultra_restricted=is_ultra_restricted,
                is_admin=is_admin,
                tz=tz,
            )
            self.users[user.id] = user
            return user

    def add_group(self, handle: str, users: Iterable[str] = (), *, group_id: str | None = None) -> Usergroup:
        """A new user group."""
        with self.change():
            group = Usergroup(group_id or self.new_id("S"), handle, handle.title(), list(users))
            self.groups[group.id] = group
            return group

    def add_channel(
        self,
        name: str,
        members: Iterable[str] = (),
        *,
        channel_id: str | None = None,
        is_private: bool = False,
        with_bot: bool = True,
        is_ext_shared: bool = False,
    ) -> Channel:
        """A new channel; the app's bot is a member unless `with_bot=False`."""
        with self.change():
            people = set(members) | ({self.app.bot_user} if with_bot else set())
            channel = Channel(channel_id or self.new_id("C"), name, people, is_private, is_ext_shared=is_ext_shared)
            self.channels[channel.id] = channel
            return channel

    def open_im(self, user_id: str) -> Channel:
        """The direct message channel between the app's bot and a person."""
        with self.change():
            for channel in self.channels.values():
                if channel.im_with == user_id:
                    return channel
            channel = Channel(self.new_id("D"), "directmessage", {user_id, self.app.bot_user}, im_with=user_id)
            self.channels[channel.id] = channel
            return channel

    def find_user(self, id_or_name: str) -> User | None:
        """By id, or by name."""
        with self.lock:
            found = self.users.get(id_or_name)
            return found or next((u for u in self.users.values() if u.name == id_or_name), None)

    def find_channel(self, id_or_name: str) -> Channel | None:
        """By id, or by name with or without `#`."""
        with self.lock:
            found = self.channels.get(id_or_name)
            name = id_or_name.removeprefix("#")
            return found or next((c for c in self.channels.values() if c.name == name and not c.im_with), None)

    # messages

    def post(
        self,
        channel: str,
        user: str,
        text: str,
        *,
        bot_id: str | None = None,
        blocks: Blocks | None = None,
        attachments: list[Json] | None = None,
        files: Iterable[str] = (),
        metadata: Json | None = None,
        thread_ts: str | None = None,
        ephemeral_to: str | None = None,
        broadcast: bool = False,
    ) -> Message:
        """Add a message; a reply to a parent that is gone lands in the channel itself."""
        with self.change():
            if thread_ts is not None:
                parent = self.message(channel, thread_ts)
                if ephemeral_to is None:
                    thread_ts = None if parent is None else (parent.thread_ts or parent.ts)
            message = Message(
                channel=channel,
                ts=self.new_ts(),
                user=user,
                text=text,
                bot_id=bot_id,
                blocks=self.with_ids(blocks or []),
                attachments=copy.deepcopy(attachments or []),
                files=list(files),
                metadata=copy.deepcopy(metadata),
                thread_ts=thread_ts,
                ephemeral_to=ephemeral_to,
                broadcast=broadcast,
            )
            self.messages.append(message)
            for file_id in message.files:
                if (file := self.files.get(file_id)) is not None:
                    file.shares.append(Share(channel, message.ts, message.thread_ts))
            self._tell(Happening("", message))
            return message

    def edit(self, message: Message, *, by: str, **fields: Any) -> None:
        """Change `text`, `blocks`, `attachments` or `metadata` of a message."""
        with self.change():
            before = copy.copy(message)
            for name, value in fields.items():
                setattr(message, name, self.with_ids(value) if name == "blocks" else copy.deepcopy(value))
            message.edited = {"user": by, "ts": self.new_ts()}
            self._tell(Happening("message_changed", message, before))

    def remove(self, message: Message) -> None:
        """Delete a message; its replies stay."""
        with self.change():
            before = copy.copy(message)
            message.deleted = True
            self._tell(Happening("message_deleted", message, before))

    def _tell(self, happening: Happening) -> None:
        if happening.message.ephemeral_to is None and self.on_message is not None:
            self.on_message(happening)

    def app_sees(self, file: StoredFile) -> bool:
        """Whether the app may see a file: its own, shared where its bot is, or given to it in a form."""
        shared = any(self.app.bot_user in self.channels[share.channel].members for share in file.shares)
        return file.for_app or file.user == self.app.bot_user or shared

    def message(self, channel: str, ts: str) -> Message | None:
        """A message that everybody in the channel can see, or None."""
        with self.lock:
            return next(
                (
                    m
                    for m in self.messages
                    if m.ts == ts and m.channel == channel and m.ephemeral_to is None and not m.deleted
                ),
                None,
            )

    def visible(self, channel: str) -> list[Message]:
        """Messages of a channel, oldest first, without ephemeral and deleted ones."""
        with self.lock:
            return [m for m in self.messages if m.channel == channel and m.ephemeral_to is None and not m.deleted]

    def replies(self, channel: str, parent_ts: str) -> list[Message]:
        """Replies of a thread, oldest first, without the parent."""
        return [m for m in self.visible(channel) if m.thread_ts == parent_ts and m.ts != parent_ts]

    def with_ids(self, blocks: Blocks) -> Blocks:
        """A copy of the blocks where every block and interactive element has an id, as the platform adds them."""
        made = copy.deepcopy(blocks)
        for block in made:
            block.setdefault("block_id", secrets.token_urlsafe(4))
            for element in (*block.get("elements", ()), block.get("accessory"), block.get("element")):
                if isinstance(element, dict) and element.get("type", "").endswith(_INTERACTIVE):
                    element.setdefault("action_id", secrets.token_urlsafe(4))
        return made

    def record_violation(self, violation: Violation) -> None:
        """Remember what the app did wrong."""
        with self.change():
            self.violations.append(violation)


_INTERACTIVE = ("button", "select", "overflow", "checkboxes", "picker", "radio_buttons", "_input")
