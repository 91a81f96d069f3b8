"""What the composer completes: words that the caller of the sandbox gave, and commands typed so far."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sandbox.slack.records import Json
from sandbox.slack.workspace import Workspace

PageHints = Mapping[str, Mapping[str, str]]
"""Words before the cursor -> the words that may follow, each with a line of help (or "").

`{"": {"/knob": "performance knobs"}, "/knob": {"list": "values"}, "/knob show": {"TARGET_CTAS": ""}}`.
The key `"/knob *"` holds words that may stand anywhere later in a command.
"""
MOST_TYPED = 50


def hints(workspace: Workspace, words: PageHints) -> Json:
    """The JSON of /_page/hints: `words` as given, `typed` newest first."""
    with workspace.lock:
        sent = [envelope.payload for envelope in workspace.envelopes if envelope.kind == "slash_commands"]
    lines = (f"{payload['command']} {typed(payload['text'])}".strip() for payload in reversed(sent))
    return {
        "words": {before: dict(after) for before, after in words.items()},
        "typed": list(dict.fromkeys(lines))[:MOST_TYPED],
    }


def typed(text: str) -> str:
    """A command's text as it was typed, before the client escaped it and linked the names."""
    text = re.sub(r"<([@#])\w+\|([^>]*)>", r"\1\2", text)
    text = re.sub(r"<!subteam\^\w+\|(@[^>]*)>", r"\1", text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
