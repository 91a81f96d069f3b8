"""What the demo prints: the channel with its threads as people saw it, and what they typed and clicked."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from sandbox.eyes import Eyes, Json, is_reply
from sandbox.stage import CHANNEL, Stage
from sandbox.telling import Check

CARD_LINES = 5
WIDTH, NARROWEST, WIDEST = 110, 60, 160
STATED = re.compile(r"^[0-9]{2}:[0-9]{2}:[0-9]{2} UTC ")
INDENT = {"channel": "", "command": "", "thread": "   | ", "button": "   > "}


@dataclass(frozen=True, slots=True)
class Line:
    """Something that was said or done. `where`: channel, thread, command, button, or `only @NAME`."""

    at: float
    who: str
    where: str
    text: str

    def document(self) -> dict[str, JsonValue]:
        """As the JSON document has it."""
        moment = datetime.fromtimestamp(self.at, tz=UTC).isoformat(timespec="milliseconds")
        return {"ts": moment, "who": self.who, "where": self.where, "text": self.text}


def transcript(stage: Stage) -> list[Line]:
    """Messages, commands and clicks, oldest first. A card stands at the time of its post, as it looks in the end."""
    if stage.slack.workspace.find_channel(CHANNEL) is None:
        return []  # it ended before there was a workspace
    return sorted([*_messages(Eyes(stage)), *_deeds(stage)], key=lambda line: line.at)


def _messages(eyes: Eyes) -> Iterator[Line]:
    names = {user.id: user.name for user in eyes.stage.slack.workspace.users.values()}
    for message in eyes.transcript():
        reader = message["ephemeral_to"]
        where = f"only @{names.get(str(reader), reader)}" if reader else ("thread" if is_reply(message) else "channel")
        yield Line(float(str(message["ts"])), str(message["who"]), where, eyes.text(message))


def _deeds(stage: Stage) -> Iterator[Line]:
    """What people typed and clicked, as the workspace sent it to the app."""
    names = {user.id: user.name for user in stage.slack.workspace.users.values()}
    for envelope in stage.slack.people.envelopes:
        payload: Json = envelope.payload
        if envelope.kind == "slash_commands":
            who = names.get(str(payload["user_id"]), "")
            yield Line(envelope.sent_at, who, "command", f"{payload['command']} {payload['text']}")
        elif envelope.kind == "interactive":
            user, actions = payload.get("user"), payload.get("actions")
            who = names.get(str(user["id"]), "") if isinstance(user, dict) else ""
            for action in actions if isinstance(actions, list) else []:
                label = action.get("text") if isinstance(action, dict) else None
                told = label.get("text") if isinstance(label, dict) else "a button"
                yield Line(envelope.sent_at, who, "button", f"[{told}]")


def page(lines: list[Line], folder: Path) -> Iterator[str]:
    """The transcript for people: replies under their card, private answers marked, long cards cut."""
    columns = min(WIDEST, max(NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns))
    for line in lines:
        moment = datetime.fromtimestamp(line.at, tz=UTC).strftime("%H:%M:%S")
        text = STATED.sub("", clean(line.text, folder)) if line.where == "thread" else clean(line.text, folder)
        told = text.split("\n")
        if line.where in {"channel", "command"}:
            yield ""
        if line.where == "channel" and len(told) > CARD_LINES + 1:
            told = [*told[:CARD_LINES], f"... {len(told) - CARD_LINES} more lines"]
        head = {"channel": f"{line.who}: ", "command": f"@{line.who} types ", "button": f"@{line.who} clicks "}
        before = head.get(line.where, f"({line.where}) " if line.where.startswith("only") else "")
        indent = INDENT.get(line.where, "   ~ ")
        for number, part in enumerate(told):
            first = f"{moment} {indent}{before}" if number == 0 else f"{'':9}{indent}"
            yield textwrap.fill(
                part,
                columns,
                initial_indent=first,
                subsequent_indent=f"{'':9}{' ' * len(indent)}  ",
                break_long_words=False,
                break_on_hyphens=False,
            )


def clean(text: str, folder: Path) -> str:
    """Words without Slack's bold, and paths without the demo's own folder."""
    return re.sub(r"\*([^*\n]+)\*", r"\1", text).replace(f"{folder}/", "")


def summary(checks: list[Check]) -> str:
    """The last line."""
    bad = [check.name for check in checks if not check.ok]
    return f"{len(checks) - len(bad)} of {len(checks)} checks held" + (f"; not: {', '.join(bad)}" if bad else "")
