"""Text of people and machines made safe to show: it cannot ping anybody, break out of its place or hide characters."""

from __future__ import annotations

import re
import unicodedata

_BROADCAST = re.compile(r"@(?=(?:channel|here|everyone|group)\b)", re.IGNORECASE)
_ZERO_WIDTH_JOINER = "\u2060"
_REFERENCE_OPENERS = str.maketrans({"<": "\u2039", "`": "'"})


def visible(text: str) -> str:
    """One line without characters that act instead of being read.

    Blanks and line breaks become one blank each, other control characters, lone surrogates and private characters
    become U+FFFD, zero-width characters and direction controls go.
    """
    return "".join(_visible_char(char) for char in text)


def _visible_char(char: str) -> str:
    if char.isspace():
        return " "
    match unicodedata.category(char):
        case "Cf":
            return ""
        case "Cc" | "Cs" | "Co" | "Cn":
            return "\ufffd"
        case _:
            return char


def shown(text: str, *, limit: int = 40) -> str:
    """User text for a plain message: visible, at most `limit` characters, and without `<` and backticks."""
    # a little more than the limit is enough to know that it was longer, whatever the length of the text
    line = visible(text[: limit * 4]).translate(_REFERENCE_OPENERS)
    return line if len(line) <= limit and len(text) <= limit * 4 else f"{line[: limit - 1]}…"


def named(text: str) -> str:
    """The same in quotes, of the kind that it does not hold itself."""
    line = shown(text)
    return f"'{line}'" if '"' in line else f'"{line}"'


def mrkdwn(text: str) -> str:
    """Text for a Slack mrkdwn field: `& < >` escaped, visible, and nobody is pinged by an `@here` in it.

    Source: FACTS-slack.md section 4, "`@here`/`<!channel>` injection".
    """
    escaped = visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _BROADCAST.sub(f"@{_ZERO_WIDTH_JOINER}", escaped)


def code(text: str) -> str:
    """Text as a mrkdwn code span, which formatting, emoji and links inside do not leave. Empty text shows as `""`."""
    return f"`{mrkdwn(text).replace('`', chr(39)) or chr(34) * 2}`"
