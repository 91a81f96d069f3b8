"""Judges every call: arguments against the method reference, blocks, texts, metadata, timestamps."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sandbox.slack.blockrules import BlockJudge, mrkdwn, view_bytes
from sandbox.slack.blockschema import BlockSchema, Problem
from sandbox.slack.errors import SlackError
from sandbox.slack.methods import Request
from sandbox.slack.records import Json, Violation
from sandbox.slack.workspace import Workspace

JSON_ARGUMENTS = frozenset({"blocks", "attachments", "metadata", "view", "message", "unfurls", "files"})
MOST_TEXT = 4_000
MOST_TEXT_POST = 40_000
MOST_METADATA_BYTES = 4_096
MOST_VIEW_BYTES = 250_000
EVENT_TYPE = re.compile(r"[A-Za-z0-9_]{1,50}")
MASS_MENTION = re.compile(r"<!(channel|here|everyone)[|>]")
ANSWERED = frozenset({"msg_blocks_too_long", "only_one_table_allowed"})
EVERYWHERE = frozenset({"token", "team_id"})
"""slack_bolt's clients add team_id to every call; the platform takes it everywhere."""
RESPONSE_KEYS = frozenset({
    "text", "blocks", "attachments", "response_type", "replace_original", "delete_original",
    "unfurl_links", "unfurl_media", "thread_ts", "metadata", "mrkdwn", "parse", "link_names",
})  # fmt: skip


class Oracle:
    """Answers as the platform would, and remembers each violation in the workspace."""

    def __init__(self, workspace: Workspace, reference: Path | None) -> None:
        self._workspace = workspace
        self._methods: dict[str, Json] = {}
        if reference is not None:
            for file in sorted((reference / "method-ref").glob("[!_]*.json")):
                self._methods[file.stem] = json.loads(file.read_text())
        self._judge = BlockJudge(BlockSchema(reference) if reference is not None else None)

    def note(self, method: str, code: str, message: str, pointer: str = "") -> None:
        """Remember a violation."""
        self._workspace.record_violation(Violation(method, code, message, pointer))

    def judge_arguments(self, method: str, args: Json) -> None:
        """Unknown, missing and mistyped arguments.

        Raises: SlackError `invalid_arguments` for unknown and missing ones; a wrong type is only remembered,
        because the platform coerces it.
        """
        entry = self._methods.get(method)
        if entry is None:
            return
        spec = entry.get("args") or {}
        known: Json = spec.get("properties", {})
        faults: list[str] = []
        for name in args:
            if name not in known and name not in EVERYWHERE:
                self.note(method, "unknown_argument", f"{method} has no argument {name!r}", f"/{name}")
                faults.append(f"[ERROR] unknown field: {name}")
        for name in spec.get("required") or ():
            if name != "token" and (args.get(name) is None or args.get(name) == ""):
                self.note(method, "missing_argument", f"{method} needs {name!r}", f"/{name}")
                faults.append(f"[ERROR] missing required field: {name}")
        if faults:
            raise SlackError("invalid_arguments", response_metadata={"messages": faults})
        for name, value in args.items():
            if name in known and name not in JSON_ARGUMENTS and not _fits(known[name], value):
                self.note(method, "argument_type", f"{name}={value!r} is not what {method} takes", f"/{name}")

    def judge_message(self, request: Request) -> None:
        """A message that a method is about to write.

        Raises: SlackError no_text, msg_too_long, invalid_blocks, invalid_blocks_format, markdown_text_conflict,
        msg_blocks_too_long, invalid_metadata_format, metadata_too_large.
        """
        args = request.args
        if args.get("markdown_text") and (args.get("text") or args.get("blocks")):
            self.note(request.method, "markdown_text_conflict", "markdown_text excludes text and blocks")
            raise SlackError("markdown_text_conflict")
        if len(str(args.get("markdown_text") or "")) > 12_000:
            self.note(request.method, "msg_too_long", "markdown_text is longer than 12,000", "/markdown_text")
            raise SlackError("msg_too_long")
        if args.get("markdown_text"):
            args = {key: value for key, value in args.items() if key != "markdown_text"} | {"text": "-"}
        if request.method == "chat.update" and set(args) <= {"channel", "ts", "metadata"} and "metadata" in args:
            self._metadata(request.method, args["metadata"])
            return
        self.judge_body(request.method, args)

    def judge_body(self, method: str, body: Json) -> None:
        """Text, blocks, attachments and metadata of a message, whichever way it came. Raises as judge_message."""
        if method == "response_url":
            for name in set(body) - RESPONSE_KEYS:
                self.note(method, "unknown_argument", f"a response_url knows no {name!r}", f"/{name}")
        text, blocks = body.get("text"), body.get("blocks")
        if text is not None and not isinstance(text, str):
            self.note(method, "argument_type", f"text {text!r} is not a string", "/text")
        if blocks is not None and not isinstance(blocks, list):
            self.note(method, "invalid_blocks_format", "blocks must be a JSON list", "/blocks")
            raise SlackError("invalid_blocks_format")
        if not text and not blocks and not body.get("attachments"):
            self.note(method, "no_text", "a message needs text, blocks or attachments")
            raise SlackError("no_text")
        if blocks and not text:
            self.note(method, "text_missing", "blocks without text: no notification, no screen reader", "/text")
        if MASS_MENTION.search(json.dumps([text, mrkdwn(blocks)])):
            self.note(method, "mass_mention", "the message pings everybody (@channel, @here or @everyone)")
        self._length(method, str(text or ""))
        if blocks:
            self._blocks(method, self._judge.blocks(blocks, "message"))
        attachments = body.get("attachments") or []
        if len(attachments) > 100:
            self.note(method, "too_many_attachments", "no more than 100 attachments", "/attachments")
            raise SlackError("too_many_attachments")
        for index, attachment in enumerate(attachments):
            inner = attachment.get("blocks") if isinstance(attachment, dict) else None
            if inner:
                self._blocks(method, self._judge.blocks(inner, "message", f"/attachments/{index}/blocks"))
        if body.get("metadata") is not None:
            self._metadata(method, body["metadata"])

    def _length(self, method: str, text: str) -> None:
        if method in {"chat.update", "chat.postEphemeral", "response_url"} and len(text) > MOST_TEXT:
            self.note(method, "msg_too_long", f"{len(text)} characters of text, no more than {MOST_TEXT}", "/text")
            raise SlackError("msg_too_long")
        if len(text) > MOST_TEXT:
            self.note(method, "text_advised", f"{len(text)} characters, 4,000 advised; cut at 40,000", "/text")

    def _blocks(self, method: str, problems: list[Problem]) -> None:
        if not problems:
            return
        for found in problems:
            self.note(method, found.code if found.code in ANSWERED else "invalid_blocks", found.message, found.pointer)
        error = next((p.code for p in problems if p.code == "msg_blocks_too_long"), "invalid_blocks")
        if any(p.code == "only_one_table_allowed" for p in problems):
            error = "invalid_attachments"
        raise SlackError(
            error,
            errors=[found.shown() for found in problems],
            response_metadata={
                "messages": [f"[ERROR] {found.message} [json-pointer:/blocks{found.pointer}]" for found in problems]
            },
        )

    def _metadata(self, method: str, metadata: Any) -> None:
        if metadata == {}:
            return
        if not isinstance(metadata, dict):
            self.note(method, "invalid_metadata_format", "metadata must be an object", "/metadata")
            raise SlackError("invalid_metadata_format")
        kind, payload = metadata.get("event_type"), metadata.get("event_payload")
        if set(metadata) - {"event_type", "event_payload", "entities"}:
            self.note(method, "invalid_metadata_format", "unknown keys in metadata", "/metadata")
            raise SlackError("invalid_metadata_format")
        if "entities" in metadata and kind is None:
            return
        if not isinstance(kind, str) or not EVENT_TYPE.fullmatch(kind) or not isinstance(payload, dict):
            self.note(method, "invalid_metadata_format", "metadata needs event_type and event_payload", "/metadata")
            raise SlackError("invalid_metadata_format")
        if not all(_shallow(value) for value in payload.values()):
            self.note(method, "invalid_metadata_schema", "event_payload is nested too deeply", "/metadata")
            raise SlackError("invalid_metadata_schema")
        if len(json.dumps(metadata).encode()) > MOST_METADATA_BYTES:
            self.note(method, "metadata_too_large", "metadata is larger than 4 kB", "/metadata")
            raise SlackError("metadata_too_large")

    def judge_view(self, request: Request) -> Json:
        """The view argument of views.*. Raises: SlackError invalid_arguments, view_too_large."""
        view = request.args.get("view")
        problems = self._judge.view(view)
        if problems or not isinstance(view, dict):
            for found in problems:
                self.note(request.method, "invalid_view", found.message, found.pointer)
            messages = [f"[ERROR] {found.message} [json-pointer:/view{found.pointer}]" for found in problems]
            raise SlackError("invalid_arguments", response_metadata={"messages": messages})
        if view_bytes(view) > MOST_VIEW_BYTES:
            self.note(request.method, "view_too_large", "a view is larger than 250 kB", "/view")
            raise SlackError("view_too_large")
        return view

    def validate(self, what: str, value: Any) -> list[Problem]:
        """What blocks.validate finds in `blocks`, a `message` or a `view`."""
        if what == "view":
            return self._judge.view(value)
        if what == "message":
            value = value.get("blocks") if isinstance(value, dict) else value
        return self._judge.blocks(value, "message")

    def knows(self, method: str) -> bool | None:
        """Whether the method exists on the platform; None without reference data."""
        return method in self._methods if self._methods else None


def _fits(spec: Json, value: Any) -> bool:
    """Whether a value is of the documented type, in JSON or as text."""
    options = [*spec.get("anyOf", ()), *([spec] if "type" in spec else ())]
    if not options:
        return True
    if value is None:
        return True
    return any(_fits_one(option, value) for option in options)


def _fits_one(spec: Json, value: Any) -> bool:
    if "enum" in spec and value not in spec["enum"]:
        return False
    match spec.get("type"):
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool) or value in {0, 1, "0", "1", "true", "false", "True", "False"}
        case "number" | "integer":
            return not isinstance(value, bool) and str(value).lstrip("-").replace(".", "", 1).isdigit()
        case "array":
            return isinstance(value, (list, str))
        case _:
            return True


def _shallow(value: Any) -> bool:
    """Scalars, one level of objects, lists of scalars or of flat objects."""
    if isinstance(value, list):
        return all(not isinstance(item, list) and _shallow(item) for item in value)
    if isinstance(value, dict):
        return all(not isinstance(item, (dict, list)) for item in value.values())
    return True
