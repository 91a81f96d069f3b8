"""What one person at the page sees, and what is new since the last look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sandbox.slack.control import plain
from sandbox.slack.faults import FaultMenu
from sandbox.slack.httpmode import HttpHub
from sandbox.slack.records import Call, Channel, Envelope, Json, Message, User
from sandbox.slack.socketmode import SocketHub
from sandbox.slack.webapi import WebApi
from sandbox.slack.workspace import Workspace

MOST_TRAFFIC = 300


class Blame:
    """Which call each violation belongs to; they carry no link, so it is noted when they appear."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.calls: list[int | None] = []

    def note(self) -> None:
        """Assign new violations to the latest call of their method."""
        with self._workspace.lock:
            violations, calls = self._workspace.violations, self._workspace.calls
            del self.calls[len(violations) :]
            for violation in violations[len(self.calls) :]:
                found = (n for n in range(len(calls) - 1, -1, -1) if calls[n].method == violation.method)
                self.calls.append(next(found, None))


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a reader looks."""

    workspace: Workspace
    sockets: SocketHub
    http: HttpHub
    faults: FaultMenu
    api: WebApi
    blame: Blame


@dataclass(slots=True)
class Reader:
    """One open page. `user` is an id or a name; without one it is the first person of the workspace."""

    sources: Sources
    user: str = ""
    _state: Json = field(default_factory=dict)
    _messages: dict[str, tuple[object, ...]] = field(default_factory=dict)
    _calls: list[tuple[object, ...]] = field(default_factory=list)
    _envelopes: list[tuple[object, ...]] = field(default_factory=list)
    _violations: int = 0
    _fresh: bool = True

    def news(self) -> Json:
        """Everything that changed since the last call; empty when nothing did.

        Keys: `fresh` (the first one), `state`, `messages` (a `gone` one is to be forgotten), `calls`, `envelopes`,
        `violations`; traffic is numbered by `n`, and `restart` names lists that became shorter.
        """
        workspace = self.sources.workspace
        made: Json = {"restart": []}
        with workspace.lock:
            me = self._me()
            places = {c.id: c for c in workspace.channels.values() if me is not None and me.id in c.members}
            state = self._shown_state(me, list(places.values()))
            if state != self._state:
                self._state = made["state"] = state
            made["messages"] = self._new_messages(me, places)
            made["calls"] = self._numbered("calls", workspace.calls, self._calls, _call_mark, made["restart"])
            marks = self._envelopes
            made["envelopes"] = self._numbered("envelopes", workspace.envelopes, marks, _envelope_mark, made["restart"])
            made["violations"] = self._new_violations(made["restart"])
        made = {key: value for key, value in made.items() if value}
        if self._fresh:
            self._fresh = False
            made["fresh"] = True
        return made

    def _me(self) -> User | None:
        found = self.sources.workspace.find_user(self.user)
        people = (user for user in self.sources.workspace.users.values() if not user.is_bot)
        return found if found is not None and not found.is_bot else next(people, None)

    def _shown_state(self, me: User | None, places: list[Channel]) -> Json:
        workspace = self.sources.workspace
        views = [view for view in workspace.views.values() if me is not None and view["_opened_by"] == me.id]
        return {
            "team": workspace.domain,
            "bot": workspace.app.bot_user,
            "app": workspace.app.name,
            "me": me.id if me else None,
            "users": [plain(user) for user in workspace.users.values()],
            "groups": [plain(group) for group in workspace.groups.values()],
            "channels": [plain(channel) | {"kind": channel.kind} for channel in places],
            "all_channels": [
                {"id": c.id, "name": c.name, "is_archived": c.is_archived}
                for c in workspace.channels.values()
                if not c.im_with
            ],
            "sockets": self.sources.sockets.connected,
            "http": bool(self.sources.http.request_url),
            "faults": plain(self.sources.faults.listed()),
            "rate_limits": self.sources.api.rate_limits,
            "token_error": workspace.app.token_error,
            "views": plain(views),
        }

    def _new_messages(self, me: User | None, places: dict[str, Channel]) -> list[Json]:
        made: list[Json] = []
        seen: dict[str, tuple[object, ...]] = {}
        for message in self.sources.workspace.messages:
            hidden = message.deleted or message.channel not in places
            if hidden or (message.ephemeral_to and (me is None or message.ephemeral_to != me.id)):
                continue
            key = f"{message.channel} {message.ts}"
            seen[key] = _message_mark(message)
            if self._messages.get(key) != seen[key]:
                made.append(_shown_message(message) | {"key": key, "files": self._shown_files(message)})
        made += [{"key": key, "gone": True} for key in self._messages if key not in seen]
        self._messages = seen
        return made

    def _shown_files(self, message: Message) -> list[Json]:
        found = [self.sources.workspace.files.get(file_id) for file_id in message.files]
        return [
            {"id": f.id, "name": f.name, "title": f.title, "alt": f.alt_txt, "bytes": f.length, "gone": f.deleted,
             "picture": f.picture is not None}
            for f in found
            if f is not None
        ]  # fmt: skip

    @staticmethod
    def _numbered(
        name: str,
        records: Sequence[Any],
        marks: list[tuple[object, ...]],
        mark: Callable[[Any], tuple[object, ...]],
        restart: list[str],
    ) -> list[Json]:
        if len(records) < len(marks):
            marks.clear()
            restart.append(name)
        made: list[Json] = []
        start = max(0, len(records) - MOST_TRAFFIC)
        for n, record in enumerate(records):
            now = mark(record)
            if n == len(marks):
                marks.append(())
            if marks[n] != now:
                marks[n] = now
                if n >= start:
                    made.append(plain(record) | {"n": n})
        return made

    def _new_violations(self, restart: list[str]) -> list[Json]:
        self.sources.blame.note()
        violations = self.sources.workspace.violations
        if len(violations) < self._violations:
            self._violations = 0
            restart.append("violations")
        start, self._violations = self._violations, len(violations)
        blamed = self.sources.blame.calls
        return [plain(violations[n]) | {"n": n, "call": blamed[n]} for n in range(start, len(violations))]


def _shown_message(message: Message) -> Json:
    names = ("channel", "ts", "user", "text", "blocks", "attachments", "thread_ts", "edited", "broadcast", "reactions")
    return {name: plain(getattr(message, name)) for name in names} | {"ephemeral": message.ephemeral_to is not None}


def _message_mark(message: Message) -> tuple[object, ...]:
    edited = message.edited["ts"] if message.edited else None
    return (edited, sum(map(len, message.reactions.values())), message.thread_ts)


def _call_mark(call: Call) -> tuple[object, ...]:
    return (call.at, call.status, call.ok, call.error, call.fault)


def _envelope_mark(envelope: Envelope) -> tuple[object, ...]:
    marks = (envelope.attempts, envelope.acked_ms, envelope.acks, envelope.late, envelope.expired, envelope.failure)
    return (envelope.envelope_id, *marks)
