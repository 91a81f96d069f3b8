"""chat.* and reactions.*: writing messages."""

from __future__ import annotations

from sandbox.slack.errors import SlackError
from sandbox.slack.methods import TS, Request, method, shape
from sandbox.slack.records import Channel, Json


def _target(request: Request) -> Channel:
    """The channel to write to; a user id opens the direct message, a name is looked up."""
    workspace = request.workspace
    wanted = request.text("channel")
    if wanted in workspace.users:
        if workspace.users[wanted].deleted:
            raise SlackError("user_not_found")
        return workspace.open_im(wanted)
    if wanted not in workspace.channels and (named := workspace.find_channel(wanted)):
        request.args["channel"] = named.id
    channel = request.channel()
    if workspace.app.bot_user not in channel.members and "chat:write.public" not in workspace.app.scopes:
        raise SlackError("not_in_channel")
    if channel.is_archived:
        raise SlackError("is_archived")
    return channel


def _thread(request: Request, channel: Channel) -> str | None:
    """The parent to answer; anything that is not a string timestamp is dropped silently, as the platform does."""
    wanted = request.args.get("thread_ts")
    if wanted is None or wanted == "":
        if request.flag("reply_broadcast"):
            request.violation("broadcast_without_thread", "reply_broadcast needs thread_ts", "/reply_broadcast")
        return None
    if not isinstance(wanted, str) or not TS.fullmatch(wanted):
        request.violation("thread_ts_format", f"thread_ts {wanted!r} is not a string timestamp", "/thread_ts")
        return None
    parent = request.workspace.message(channel.id, wanted)
    if parent is not None and parent.thread_ts not in {None, parent.ts}:
        request.violation("thread_ts_of_reply", f"thread_ts {wanted!r} is a reply, not its parent", "/thread_ts")
    return wanted


def _text(request: Request) -> str:
    return request.text("text") or request.text("markdown_text")


@method("chat.postMessage", scope="chat:write", per_minute=60)
def post_message(request: Request) -> Json:
    """Post to a channel or thread."""
    channel = _target(request)
    request.oracle.judge_message(request)
    message = request.workspace.post(
        channel.id,
        request.workspace.app.bot_user,
        _text(request)[:40_000],
        bot_id=request.workspace.app.bot_id,
        blocks=request.blocks(),
        attachments=request.args.get("attachments") or [],
        metadata=request.args.get("metadata") or None,
        thread_ts=_thread(request, channel),
        broadcast=request.flag("reply_broadcast"),
    )
    return {
        "channel": channel.id,
        "ts": message.ts,
        "message": shape(request.workspace, message, with_metadata=True),
    }


@method("chat.update", scope="chat:write")
def update(request: Request) -> Json:
    """Change a message of the app's own. Omitted metadata stays, `{}` removes it."""
    channel = request.channel()
    message = request.message_at(channel, "ts")
    if message.bot_id != request.workspace.app.bot_id:
        raise SlackError("cant_update_message")
    if channel.is_archived:
        raise SlackError("is_archived")
    request.oracle.judge_message(request)
    fields: Json = {}
    if "text" in request.args or "markdown_text" in request.args:
        fields["text"] = _text(request)
    if request.args.get("blocks") is not None:
        fields["blocks"] = request.blocks()
    elif "text" in fields:
        if message.blocks:
            request.violation(
                "blocks_dropped", "a text without blocks replaces the blocks; send [] to say so", "/blocks"
            )
        fields["blocks"] = []
    if request.args.get("attachments") is not None:
        fields["attachments"] = request.args["attachments"]
    if request.args.get("metadata") is not None:
        fields["metadata"] = request.args["metadata"] or None
    request.workspace.edit(message, by=request.workspace.app.bot_user, **fields)
    return {
        "channel": channel.id,
        "ts": message.ts,
        "text": message.text,
        "message": shape(request.workspace, message, with_metadata=True),
    }


@method("chat.postEphemeral", scope="chat:write", per_minute=100)
def post_ephemeral(request: Request) -> Json:
    """Show something to one member of a channel; it has no history and cannot be updated."""
    channel = _target(request)
    user = request.workspace.users.get(request.text("user"))
    if user is None or user.deleted or user.id not in channel.members:
        raise SlackError("user_not_in_channel")
    request.oracle.judge_message(request)
    message = request.workspace.post(
        channel.id,
        request.workspace.app.bot_user,
        _text(request),
        bot_id=request.workspace.app.bot_id,
        blocks=request.blocks(),
        attachments=request.args.get("attachments") or [],
        thread_ts=_thread(request, channel),
        ephemeral_to=user.id,
    )
    return {"message_ts": message.ts}


@method("chat.delete", scope="chat:write")
def delete(request: Request) -> Json:
    """Delete a message of the app's own."""
    channel = request.channel()
    message = request.message_at(channel, "ts")
    if message.bot_id != request.workspace.app.bot_id:
        raise SlackError("cant_delete_message")
    request.workspace.remove(message)
    return {"channel": channel.id, "ts": message.ts}


@method("chat.getPermalink", per_minute=300)
def get_permalink(request: Request) -> Json:
    """The address of a message."""
    channel = request.channel()
    message = request.message_at(channel, "message_ts")
    link = f"https://{request.workspace.domain}.slack.example/archives/{channel.id}/p{message.ts.replace('.', '')}"
    if message.thread_ts and message.thread_ts != message.ts:
        link += f"?thread_ts={message.thread_ts}&cid={channel.id}"
    return {"channel": channel.id, "permalink": link}


@method("reactions.add", scope="reactions:write")
def react(request: Request) -> Json:
    """Add a reaction of the bot."""
    channel = request.channel(must_be_in=True)
    if channel.is_archived:
        raise SlackError("is_archived")
    name = request.text("name")
    if not name or name != name.strip(": ") or name != name.lower():
        raise SlackError("invalid_name")
    if not TS.fullmatch(request.text("timestamp")):
        raise SlackError("bad_timestamp")
    message = request.message_at(channel, "timestamp")
    with request.workspace.change():
        users = message.reactions.setdefault(name, [])
        if request.workspace.app.bot_user in users:
            raise SlackError("already_reacted")
        users.append(request.workspace.app.bot_user)
    return {}
