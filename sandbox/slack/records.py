"""What the stand-in workspace remembers: people, channels, messages, calls, envelopes, violations."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
Blocks = list[Json]


@dataclass(slots=True)
class User:
    """A member, guest, stranger or bot."""

    id: str
    name: str
    team_id: str
    is_bot: bool = False
    deleted: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_admin: bool = False
    tz: str = "Etc/UTC"


@dataclass(slots=True)
class Usergroup:
    """A user group with its handle and members."""

    id: str
    handle: str
    name: str
    users: list[str] = field(default_factory=list)
    disabled: bool = False


@dataclass(slots=True)
class Channel:
    """A public or private channel, or a direct message with exactly one other person (`im_with`)."""

    id: str
    name: str
    members: set[str] = field(default_factory=set)
    is_private: bool = False
    is_archived: bool = False
    is_ext_shared: bool = False
    is_org_shared: bool = False
    im_with: str | None = None

    @property
    def kind(self) -> str:
        """The scope family: `channels`, `groups` or `im`."""
        if self.im_with is not None:
            return "im"
        return "groups" if self.is_private else "channels"


@dataclass(slots=True)
class Message:
    """A message; `ephemeral_to` names the only reader of an ephemeral one."""

    channel: str
    ts: str
    user: str
    text: str
    bot_id: str | None = None
    blocks: Blocks = field(default_factory=list)
    attachments: list[Json] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    metadata: Json | None = None
    thread_ts: str | None = None
    edited: Json | None = None
    ephemeral_to: str | None = None
    broadcast: bool = False
    reactions: dict[str, list[str]] = field(default_factory=dict)
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class Happening:
    """A message that everybody can see was posted, changed or deleted; `before` is None for a post."""

    subtype: Literal["", "message_changed", "message_deleted"]
    message: Message
    before: Message | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """Something the app sent that the platform forbids or silently mishandles; `code` is stable."""

    method: str
    code: str
    message: str
    pointer: str = ""


@dataclass(slots=True)
class Call:
    """One Web API call or response_url post as it arrived, and what was answered.

    Units: `at` is seconds since the epoch; `status` is 0 when the connection was reset.
    """

    method: str
    args: Json
    at: float
    status: int = 0
    ok: bool = False
    error: str | None = None
    fault: str | None = None


@dataclass(slots=True)
class Envelope:
    """One Socket Mode envelope, or its like in HTTP mode. `acked_ms` is None while nobody acknowledged it.

    `expired`: the limit passed at least once. `late`: the acknowledgement came after its attempt's limit.
    `statuses`: of each attempt in HTTP mode, 0 where no answer came.
    `failure`: what the person saw instead (`operation_timeout`, `dispatch_failed`).
    Units: `sent_at` (first attempt) and `attempt_at` (last) are seconds since the epoch.
    """

    envelope_id: str
    kind: str
    payload: Json
    sent_at: float = 0.0
    sockets: list[str] = field(default_factory=list)
    attempts: int = 0
    acked_ms: float | None = None
    acks: int = 0
    attempt_at: float = 0.0
    late: bool = False
    expired: bool = False
    failure: str | None = None
    ack_payload: Json | None = None
    statuses: list[int] = field(default_factory=list)
    settled: threading.Event = field(default_factory=threading.Event, repr=False)

    def wait(self, timeout_s: float = 5.0) -> bool:
        """True once the app acknowledged in time; False when it was late, unacked, or there was no socket."""
        self.settled.wait(timeout_s)
        return self.acked_ms is not None and not self.late
