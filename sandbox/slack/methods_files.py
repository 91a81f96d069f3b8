"""files.*: an upload in three steps, what a file is, and its end."""

from __future__ import annotations

import threading

from sandbox.slack.errors import SlackError
from sandbox.slack.filestore import MOST_BYTES, StoredFile
from sandbox.slack.methods import TS, Request, method
from sandbox.slack.records import Channel, Json

MOST_ALT = 1000
SHARE_DELAY_S = 0.05
"""The answer of completeUploadExternal comes before the message with the file. Source: sdk#1277, #1461."""
FILE_KEYS = frozenset({"id", "title", "highlight_type"})


@method("files.getUploadURLExternal", scope="files:write", per_minute=100)
def get_upload_url(request: Request) -> Json:
    """Announce a file; its bytes go to the address that is given."""
    try:
        length = int(request.text("length"))
    except ValueError:
        raise SlackError("invalid_arguments") from None
    if length < 1:
        raise SlackError("missing_argument")
    if length > MOST_BYTES:
        raise SlackError("file_upload_size_restricted")
    if len(request.text("alt_txt")) > MOST_ALT:
        request.violation("alt_txt_too_large", f"alt_txt is longer than {MOST_ALT}", "/alt_txt")
        raise SlackError("alt_txt_too_large")
    workspace = request.workspace
    with workspace.change():
        made = workspace.files.announce(
            request.text("filename"), length, workspace.app.bot_user, request.text("alt_txt")
        )
    return {"file_id": made.id, "upload_url": f"{request.tickets.origin}/upload/v1/{made.ticket}"}


@method("files.completeUploadExternal", scope="files:write", per_minute=100)
def complete_upload(request: Request) -> Json:
    """Finish uploads and share them in one message, a moment after the answer."""
    files = _announced(request)
    channel = _target(request)
    comment = request.text("initial_comment")
    if comment:
        request.oracle.judge_body(request.method, {"text": comment})
    if request.args.get("blocks"):
        request.violation("not_played", "blocks of a file's message are not played here", "/blocks")
    workspace = request.workspace
    with workspace.change():
        for file, title in files:
            file.complete, file.title = True, title or file.name
    if channel is not None and request.fault != "drop_share":
        thread_ts = _thread(request, channel)
        ids = [file.id for file, _ in files]
        later = threading.Timer(
            SHARE_DELAY_S,
            lambda: workspace.post(
                channel.id,
                workspace.app.bot_user,
                comment,
                bot_id=workspace.app.bot_id,
                files=ids,
                thread_ts=thread_ts,
            ),
        )
        later.daemon = True
        later.start()
    return {"files": [workspace.files.shown(file.id) for file, _ in files]}


def _announced(request: Request) -> list[tuple[StoredFile, str]]:
    """The files that the call names, with their titles. Each was announced by the app and its bytes have come."""
    given = request.args.get("files")
    if not isinstance(given, list) or not given:
        raise SlackError("invalid_arguments", response_metadata={"messages": ["files must be a list of objects"]})
    made: list[tuple[StoredFile, str]] = []
    for index, entry in enumerate(given):
        if not isinstance(entry, dict) or not isinstance(entry.get("id"), str):
            raise SlackError("invalid_arguments", response_metadata={"messages": [f"no id in files/{index}"]})
        for name in set(entry) - FILE_KEYS:
            request.violation("unknown_argument", f"a file of {request.method} has no {name!r}", f"/files/{index}")
        file = request.workspace.files.get(entry["id"])
        if file is None or file.user != request.workspace.app.bot_user or file.deleted:
            raise SlackError("file_not_found")
        if file.data is None:
            request.violation("upload_missing", f"no bytes were sent for {file.id}", f"/files/{index}")
            raise SlackError("file_not_found")
        if file.complete:
            request.violation("completed_twice", f"{file.id} was completed before", f"/files/{index}")
            raise SlackError("file_update_failed")
        made.append((file, str(entry.get("title") or "")))
    return made


def _target(request: Request) -> Channel | None:
    """Where to share; None keeps the files private."""
    named = [name for name in (request.text("channel_id"), *request.text("channels").split(",")) if name]
    if not named:
        if request.args.get("thread_ts"):
            request.violation("thread_without_channel", "thread_ts needs a channel", "/thread_ts")
        return None
    if len(named) > 1:
        request.violation("not_played", "a share in several channels is not played here", "/channels")
        raise SlackError("channels_limit_exceeded")
    workspace = request.workspace
    channel = workspace.channels.get(named[0])
    if channel is None or (channel.kind != "channels" and workspace.app.bot_user not in channel.members):
        raise SlackError("channel_not_found")
    if workspace.app.bot_user not in channel.members:
        raise SlackError("not_in_channel")
    if channel.is_archived:
        raise SlackError("posting_to_channel_denied")
    return channel


def _thread(request: Request, channel: Channel) -> str | None:
    wanted = request.args.get("thread_ts")
    if not wanted:
        return None
    if not isinstance(wanted, str) or not TS.fullmatch(wanted):
        request.violation("thread_ts_format", f"thread_ts {wanted!r} is not a string timestamp", "/thread_ts")
        return None
    parent = request.workspace.message(channel.id, wanted)
    if parent is not None and parent.thread_ts not in {None, parent.ts}:
        request.violation("thread_ts_of_reply", f"thread_ts {wanted!r} is a reply, not its parent", "/thread_ts")
    return wanted


def _visible(request: Request) -> StoredFile:
    """The addressed file, if the app may see it: its own, shared where its bot is, or given to it in a form."""
    workspace = request.workspace
    file = workspace.files.get(request.text("file"))
    if file is None or not workspace.app_sees(file):
        raise SlackError("file_not_found")
    if file.deleted:
        raise SlackError("file_deleted")
    return file


@method("files.info", scope="files:read", per_minute=100)
def files_info(request: Request) -> Json:
    """What a file is and where it is shared."""
    file = _visible(request)
    shown = request.workspace.files.shown(file.id, request.workspace.channels.values())
    return {"file": shown, "comments": [], "response_metadata": {"next_cursor": ""}}


@method("files.delete", scope="files:write")
def files_delete(request: Request) -> Json:
    """Delete a file of the app's own."""
    file = _visible(request)
    if file.user != request.workspace.app.bot_user:
        raise SlackError("cant_delete_file")
    with request.workspace.change():
        file.deleted, file.data = True, None
    return {}
