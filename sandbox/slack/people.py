"""What people do in the workspace: type commands, mention the bot, click, edit, delete, look."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sandbox.slack import payloads
from sandbox.slack.blockrules import elements
from sandbox.slack.delivery import Delivery
from sandbox.slack.errors import PersonError, SlackError
from sandbox.slack.forms import Forms, NamedBytes
from sandbox.slack.methods import shape
from sandbox.slack.oracle import Oracle
from sandbox.slack.records import Call, Channel, Envelope, Happening, Json, Message, User
from sandbox.slack.responses import ResponseTarget, Tickets, respond
from sandbox.slack.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Click:
    """What a click did: it was sent (`envelope`), or the client first asks (`confirm`, the dialog object)."""

    envelope: Envelope | None
    confirm: Json | None = None

    def wait(self, timeout_s: float = 5.0) -> bool:
        """True once the app acknowledged the click in time."""
        return self.envelope is not None and self.envelope.wait(timeout_s)


class People(Forms):
    """The hands of every person of the workspace. Users and channels are given by id or by name."""

    def __init__(self, workspace: Workspace, delivery: Delivery, tickets: Tickets, oracle: Oracle) -> None:
        super().__init__(workspace, delivery, tickets, oracle)
        workspace.on_message = self._happened

    # doing

    def command(self, user: str, channel: str, text: str) -> Envelope:
        """Type a slash command such as `/knob list`; commands do not exist inside threads."""
        who, where = self._present(user, channel)
        command, _, rest = text.partition(" ")
        if not re.fullmatch(r"/[a-z0-9_-]{1,31}", command):
            raise PersonError(f"{command!r} is not a slash command")
        payload: Json = {
            "token": payloads.VERIFICATION,
            "team_id": self.workspace.team_id,
            "team_domain": self.workspace.domain,
            "channel_id": where.id,
            "channel_name": "privategroup" if where.is_private else where.name,
            "user_id": who.id,
            "user_name": who.name,
            "command": command,
            "text": payloads.command_text(self.workspace, rest.strip(" ")),
            "api_app_id": self.workspace.app.app_id,
            "is_enterprise_install": "false",
            "response_url": self._tickets.new_response_url("commands", where.id, who.id),
            "trigger_id": self._tickets.new_trigger(who.id),
        }
        target = ResponseTarget(where.id, who.id, time.monotonic())
        return self._delivery.deliver(
            "slash_commands", payload, on_settled=lambda envelope: self._immediate(envelope, target)
        )

    def say(self, user: str, channel: str, text: str, thread_ts: str | None = None) -> Message:
        """Write a message; the app gets `app_mention` and `message` where it subscribed and is a member."""
        return self._written(user, channel, text, thread_ts, [])

    def share(
        self, user: str, channel: str, files: Sequence[NamedBytes], text: str = "", thread_ts: str | None = None
    ) -> Message:
        """Drop files into a channel or thread, with words or without."""
        if not files:
            raise PersonError("no files to share")
        self._present(user, channel)
        return self._written(user, channel, text, thread_ts, [file.id for file in self.upload(user, files)])

    def _written(self, user: str, channel: str, text: str, thread_ts: str | None, files: list[str]) -> Message:
        who, where = self._present(user, channel)
        if where.is_archived:
            raise PersonError(f"#{where.name} is archived")
        written = payloads.typed_text(self.workspace, text)
        blocks = payloads.rich_text(written) if written else []
        message = self.workspace.post(where.id, who.id, written, blocks=blocks, thread_ts=thread_ts, files=files)
        mentioned = f"<@{self.workspace.app.bot_user}>" in written and where.kind != "im"
        if mentioned and "app_mention" in self.workspace.app.events and self._bot_in(where):
            event = shape(self.workspace, message) | {"client_msg_id": str(uuid.uuid4())}
            event.pop("subtype", None)
            self.event(event | {"type": "app_mention", "channel": where.id, "event_ts": message.ts})
        return message

    def mention(self, user: str, channel: str, text: str, thread_ts: str | None = None) -> Message:
        """Write a message that starts with a mention of the bot."""
        return self.say(user, channel, f"<@{self.workspace.app.bot_user}> {text}", thread_ts)

    def click(
        self,
        user: str,
        channel: str,
        ts: str,
        action_id: str,
        *,
        confirmed: bool = False,
        value: str | None = None,
    ) -> Click:
        """Click a button, or choose the option `value` of a menu, on a message the person can see."""
        who, where = self._present(user, channel)
        message = self._seen(who, where, ts)
        block, element = self._element(message, action_id)
        if element.get("confirm") and not confirmed:
            return Click(None, element["confirm"])
        action: Json = {key: element[key] for key in ("type", "action_id", "text", "value", "style") if key in element}
        action |= {"block_id": block["block_id"], "action_ts": self.workspace.new_ts()}
        if element["type"] != "button":
            action |= payloads.choice(element, value)
        ephemeral = message.ephemeral_to is not None
        container: Json = {
            "type": "message",
            "message_ts": message.ts,
            "channel_id": where.id,
            "is_ephemeral": ephemeral,
        }
        if message.thread_ts and message.thread_ts != message.ts:
            container["thread_ts"] = message.thread_ts
        payload = payloads.interaction(self.workspace, "block_actions", who, self._tickets.new_trigger(who.id)) | {
            "container": container,
            "channel": {"id": where.id, "name": "privategroup" if where.is_private else where.name},
            "state": {"values": {}},
            "response_url": self._tickets.new_response_url("actions", where.id, who.id, message),
            "actions": [action],
        }
        if not ephemeral:
            payload["message"] = shape(self.workspace, message, with_metadata=True)
        return Click(self._delivery.deliver("interactive", payload))

    def event(self, event: Json) -> Envelope:
        """Deliver any Events API event."""
        return self._delivery.deliver("events_api", payloads.event_callback(self.workspace, event))

    def edit_message_behind_the_bot(self, channel: str, ts: str, text: str, *, by: str | None = None) -> Message:
        """Change a message without the bot, leaving blocks only when the text stays."""
        where = self._channel(channel)
        message = self._message(where, ts)
        editor = self._user(by).id if by else message.user
        self.workspace.edit(message, by=editor, text=text, blocks=[])
        return message

    def delete_message(self, channel: str, ts: str) -> None:
        """Delete a message without the bot, as an admin or a retention rule does."""
        self.workspace.remove(self._message(self._channel(channel), ts))

    # looking

    def transcript(self, channel: str, *, seen_by: str | None = None) -> list[Json]:
        """Everything said in a channel and its threads, oldest first; ephemeral messages name their reader."""
        where = self._channel(channel)
        reader = self._user(seen_by).id if seen_by else None
        with self.workspace.lock:
            return [
                {
                    "ts": m.ts,
                    "thread_ts": m.thread_ts,
                    "who": self.workspace.users[m.user].name,
                    "text": m.text,
                    "blocks": m.blocks,
                    "files": [self.workspace.files.shown(file) for file in m.files],
                    "ephemeral_to": m.ephemeral_to,
                    "edited": m.edited,
                    "metadata": m.metadata,
                }
                for m in self.workspace.messages
                if m.channel == where.id and not m.deleted and (reader is None or m.ephemeral_to in {None, reader})
            ]

    @property
    def calls(self) -> list[Call]:
        """Every Web API call and response_url post so far."""
        with self.workspace.lock:
            return list(self.workspace.calls)

    @property
    def envelopes(self) -> list[Envelope]:
        """Every envelope so far."""
        with self.workspace.lock:
            return list(self.workspace.envelopes)

    def wait_for(self, predicate: Callable[[], object], timeout_s: float = 30.0) -> bool:
        """Wait until the predicate holds; False when the time is over."""
        return self.workspace.wait_for(predicate, timeout_s)

    # finding

    def _channel(self, channel: str) -> Channel:
        found = self.workspace.find_channel(channel)
        if found is None:
            raise PersonError(f"no channel is called {channel!r}")
        return found

    def _present(self, user: str, channel: str) -> tuple[User, Channel]:
        who, where = self._user(user), self._channel(channel)
        if who.deleted:
            raise PersonError(f"{who.name} is deactivated")
        if who.id not in where.members:
            raise PersonError(f"{who.name} is not in #{where.name}")
        return who, where

    def _message(self, channel: Channel, ts: str) -> Message:
        found = self.workspace.message(channel.id, ts)
        if found is None:
            raise PersonError(f"no message {ts!r} in #{channel.name}")
        return found

    def _seen(self, user: User, channel: Channel, ts: str) -> Message:
        with self.workspace.lock:
            for message in self.workspace.messages:
                if message.channel == channel.id and message.ts == ts and not message.deleted:
                    if message.ephemeral_to in {None, user.id}:
                        return message
                    raise PersonError(f"{user.name} cannot see the ephemeral message {ts!r}")
        raise PersonError(f"no message {ts!r} in #{channel.name}")

    def _element(self, message: Message, action_id: str) -> tuple[Json, Json]:
        for block in message.blocks:
            for _, element in elements(block):
                if element.get("action_id") == action_id:
                    return block, element
        known = [e["action_id"] for b in message.blocks for _, e in elements(b) if "action_id" in e]
        raise PersonError(f"the message has no element {action_id!r}, it has {known}")

    def _bot_in(self, channel: Channel) -> bool:
        return self.workspace.app.bot_user in channel.members

    def _happened(self, happening: Happening) -> None:
        """The app's `message` event, where it subscribed and its bot is a member. Its own messages come too."""
        message = happening.message
        channel = self.workspace.channels[message.channel]
        subscribed = f"message.{channel.kind}" in self.workspace.app.events
        if not self._bot_in(channel) or not self._delivery.running:
            return
        if subscribed:
            self.event(payloads.message_event(self.workspace, channel, happening))
        if happening.before is None and "file_shared" in self.workspace.app.events:
            for file in message.files:
                self.event(payloads.file_shared(message, file))

    # answers inside an acknowledgement

    def _immediate(self, envelope: Envelope, target: ResponseTarget) -> None:
        """The body of a command's acknowledgement is a message like one to its response_url."""
        if envelope.ack_payload is None:
            return
        call = Call("response_url", envelope.ack_payload, time.time(), status=200)
        try:
            respond(self.workspace, self._oracle, target, envelope.ack_payload, call)
        except SlackError as no:
            with self.workspace.change():
                envelope.failure = no.error
