"""What Slack sent, as it waits in the inbox: a command, a click or a mention, and nothing but what is needed of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from policies.model import Model

MOST_TEXT = 8000  # of what somebody typed; a longer text is refused by the grammar anyway


class Heard(Model):
    """`put_at`: epoch seconds at which it was put into the inbox; None: by a version that did not note it."""

    put_at: float | None = None


class HeardCommand(Heard):
    """`/knob ...`. Slash commands cannot be given in threads."""

    kind: Literal["command"] = "command"
    command: str
    text: str
    user: str
    team: str
    channel: str
    response_url: str


class HeardAction(Heard):
    """A click on a button. `thread_ts` is the thread of the message that it stands on, if any."""

    kind: Literal["action"] = "action"
    action_id: str
    value: str
    user: str
    team: str
    channel: str
    message_ts: str
    thread_ts: str | None
    response_url: str


class HeardMention(Heard):
    """`@clawback ...` in a channel or thread."""

    kind: Literal["mention"] = "mention"
    text: str
    user: str
    team: str
    channel: str
    ts: str
    thread_ts: str | None


HEARD: TypeAdapter[HeardCommand | HeardAction | HeardMention] = TypeAdapter(
    Annotated[HeardCommand | HeardAction | HeardMention, Field(discriminator="kind")]
)


def command_of(body: dict[str, Any]) -> tuple[str, HeardCommand]:
    """A slash command's payload with the key under which Slack's repeats are known: its trigger."""
    heard = HeardCommand(
        command=str(body.get("command", "")),
        text=str(body.get("text") or "")[:MOST_TEXT],
        user=str(body.get("user_id", "")),
        team=str(body.get("team_id", "")),
        channel=str(body.get("channel_id", "")),
        response_url=str(body.get("response_url", "")),
    )
    return f"command:{body.get('trigger_id', '')}", heard


def action_of(body: dict[str, Any], action: dict[str, Any]) -> tuple[str, HeardAction]:
    """A click's payload; its key is what makes one click of one person that click."""
    user = body.get("user") or {}
    container = body.get("container") or {}
    message = body.get("message") or {}
    message_ts = str(container.get("message_ts") or message.get("ts") or "")
    heard = HeardAction(
        action_id=str(action.get("action_id", "")),
        value=str(action.get("value") or "")[:2000],
        user=str(user.get("id", "")),
        team=str(user.get("team_id") or ""),
        channel=str((body.get("channel") or {}).get("id") or container.get("channel_id") or ""),
        message_ts=message_ts,
        thread_ts=container.get("thread_ts") or message.get("thread_ts"),
        response_url=str(body.get("response_url", "")),
    )
    key = ":".join(("action", message_ts, heard.action_id, heard.user, str(action.get("action_ts", ""))))
    return key, heard


def mention_of(body: dict[str, Any]) -> tuple[str, HeardMention] | None:
    """An app_mention event; None for one that no person wrote."""
    event = body.get("event") or {}
    if event.get("bot_id") or event.get("subtype") or not event.get("user"):
        return None
    heard = HeardMention(
        text=str(event.get("text") or "")[:MOST_TEXT],
        user=str(event["user"]),
        team=str(event.get("user_team") or event.get("team") or body.get("team_id") or ""),
        channel=str(event.get("channel", "")),
        ts=str(event.get("ts", "")),
        thread_ts=event.get("thread_ts"),
    )
    return f"event:{body.get('event_id', '')}", heard
