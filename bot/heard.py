"""What Slack sent, as it waits in the inbox: a command, a click or a mention, and nothing but what is needed of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from policies.model import Model

MOST_FILES = 20
MOST_TEXT = 8000  # of what somebody typed; a longer text is refused by the grammar anyway


class Heard(Model):
    """`put_at`: epoch seconds at which it was put into the inbox; None: by a version that did not note it."""

    put_at: float | None = None


class HeardFile(Model):
    """A file that came with a mention."""

    id: str
    name: str


class HeardCommand(Heard):
    """`/knob ...`. Slash commands cannot be given in threads. trigger_id: opens a form, for 3 s and once."""

    kind: Literal["command"] = "command"
    command: str
    text: str
    user: str
    team: str
    channel: str
    response_url: str
    trigger_id: str = ""


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
    trigger_id: str = ""


class HeardMention(Heard):
    """`@clawback ...` in a channel or thread."""

    kind: Literal["mention"] = "mention"
    text: str
    user: str
    team: str
    channel: str
    ts: str
    thread_ts: str | None
    files: tuple[HeardFile, ...] = ()


class HeardForm(Heard):
    """The form of `evidence add`, filled in. `a` and `b` are ids of files; `baseline` None: unset."""

    kind: Literal["form"] = "form"
    user: str
    team: str
    channel: str
    thread_ts: str | None
    knob: str
    value: str
    baseline: str | None
    metric: str
    interleaved: bool
    correctness: str | None
    note: str
    a: tuple[str, ...]
    b: tuple[str, ...]


AnyHeard = HeardCommand | HeardAction | HeardMention | HeardForm
HEARD: TypeAdapter[AnyHeard] = TypeAdapter(Annotated[AnyHeard, Field(discriminator="kind")])


def command_of(body: dict[str, Any]) -> tuple[str, HeardCommand]:
    """A slash command's payload with the key under which Slack's repeats are known: its trigger."""
    heard = HeardCommand(
        command=str(body.get("command", "")),
        text=str(body.get("text") or "")[:MOST_TEXT],
        user=str(body.get("user_id", "")),
        team=str(body.get("team_id", "")),
        channel=str(body.get("channel_id", "")),
        response_url=str(body.get("response_url", "")),
        trigger_id=str(body.get("trigger_id", "")),
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
        trigger_id=str(body.get("trigger_id", "")),
    )
    key = ":".join(("action", message_ts, heard.action_id, heard.user, str(action.get("action_ts", ""))))
    return key, heard


def mention_of(body: dict[str, Any]) -> tuple[str, HeardMention] | None:
    """An app_mention event; None for one that no person wrote."""
    event = body.get("event") or {}
    if event.get("bot_id") or event.get("subtype") not in {None, "file_share"} or not event.get("user"):
        return None
    files = [file for file in event.get("files") or () if isinstance(file, dict) and file.get("id")]
    heard = HeardMention(
        text=str(event.get("text") or "")[:MOST_TEXT],
        user=str(event["user"]),
        team=str(event.get("user_team") or event.get("team") or body.get("team_id") or ""),
        channel=str(event.get("channel", "")),
        ts=str(event.get("ts", "")),
        thread_ts=event.get("thread_ts"),
        files=tuple(HeardFile(id=str(f["id"]), name=str(f.get("name") or "")[:200]) for f in files[:MOST_FILES]),
    )
    return f"event:{body.get('event_id', '')}", heard
