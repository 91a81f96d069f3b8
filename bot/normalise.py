"""What keyboards and Slack do to typed text, taken back. Nothing is silent: the reading says when its text differs.

Source: FACTS-slack.md section 4, "Typing artefacts" and "Slash commands".
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from bot.escape import named
from policies.errors import OpsError

MAX_CHARS = 2000

_ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">"}
_MARKUP = re.compile(
    r"&(?:amp|lt|gt);"
    r"|<(?P<sigil>[@#!])(?P<target>[^<>|\n]*)(?:\|(?P<shown>[^<>\n]*))?>"
    r"|<(?P<url>(?:https?://|mailto:|tel:)[^<>|\s]+)(?:\|(?P<label>[^<>\n]*))?>"
)
_LEADING_MENTION = re.compile(r"<@[UWB][A-Z0-9]*(?:\|[^<>\n]*)?>[:,]?")
_BROADCAST = re.compile(r"<!\s*(?:channel|here|everyone|group|subteam)", re.IGNORECASE)
_RUN = re.compile(r"\w+")
_ALPHABETS_LIKE_LATIN = frozenset({"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU"})
_HYPHENS = frozenset("\u2010\u2011\u2012\u2013\u2212\ufe63")  # hyphens, figure and en dash, minus sign
EM_DASHES = frozenset("\u2014\u2015")


class Unreadable(OpsError):
    """Text that is not a command. `code` is stable; `bot.grammar` turns this into its ParseError value."""

    def __init__(self, code: str, message: str, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.code = code


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """Text as it was typed. `changed`: transport forms had to be taken back. `mentioned`: it began with `<@U..>`."""

    text: str
    changed: bool
    mentioned: bool


def unwrap(text: str) -> Unwrapped:
    """Take back entities, auto-links and references, and drop the mention in front.

    Raises:
        Unreadable: the text is too long, calls everybody, or has a link that shows something else than its address.
    """
    if len(text) > MAX_CHARS:
        raise Unreadable(
            "too-long",
            f"a command has at most {MAX_CHARS} characters, this one has {len(text)}: {named(text)}",
            hint="shorten the text; put long explanations in a message of their own",
        )
    start = _strip(text)
    mention = _LEADING_MENTION.match(start)
    body = _strip(start[mention.end() :]) if mention else start
    typed = _MARKUP.sub(_typed_form, body)
    if _BROADCAST.search(typed):
        raise _broadcast()
    return Unwrapped(text=typed, changed=typed != body, mentioned=mention is not None)


def _strip(text: str) -> str:
    """Without ordinary blanks and line ends around it: every transport adds some."""
    return text.strip(" \t\r\n")


def _typed_form(match: re.Match[str]) -> str:
    whole = match.group(0)
    if whole in _ENTITIES:
        return _ENTITIES[whole]
    if (url := match.group("url")) is not None:
        return _typed_link(url, match.group("label"))
    if match.group("sigil") == "!":
        raise _broadcast()
    return f"{match.group('sigil')}{match.group('shown') or match.group('target')}"


def _typed_link(url: str, label: str | None) -> str:
    if not label:
        return url.removeprefix("mailto:").removeprefix("tel:")
    if label == url or _is_scheme(url, label):
        return label
    raise Unreadable(
        "link-differs",
        f"the link shows {named(label)} but leads to {named(url)}",
        hint="type the text without a link",
    )


def _is_scheme(url: str, label: str) -> bool:
    """Whether what an automatic link put before the typed text is a scheme and nothing else."""
    return url.rstrip("/").removesuffix(label.rstrip("/")) in {"http://", "https://", "mailto:", "tel:"}


def _broadcast() -> Unreadable:
    return Unreadable(
        "broadcast",
        "a command must not call a channel or a group of people",
        hint="leave out @channel, @here, @everyone and group mentions",
    )


def blank_or_none(char: str) -> str | None:
    """What a blank or an invisible character stands for (`" "` or `""`), None for one that can be seen."""
    if char in " \t" or unicodedata.category(char) == "Zs":
        return " "
    return "" if unicodedata.category(char) == "Cf" else None


def plain_dash(char: str) -> str:
    """`-` for the dashes that keyboards make of it; other characters as they are."""
    return "-" if char in _HYPHENS else char


def refuse_control(char: str, at: int) -> None:
    """Refuse a character that would act instead of being read. `at` counts from 0, the message from 1.

    Raises:
        Unreadable: a line break, a control character or half a character.
    """
    category = unicodedata.category(char)
    if char in "\r\n\x0b\x0c\x85" or category in {"Zl", "Zp"}:
        raise Unreadable(
            "line-break", f"there is a line break at character {at + 1}", hint="write one command on one line"
        )
    if category in {"Cc", "Cs"}:
        raise Unreadable(
            "control-character",
            f"there is a control character (U+{ord(char):04X}) at character {at + 1}",
            hint="type the command again instead of pasting it",
        )


def character_name(char: str) -> str:
    """`CYRILLIC CAPITAL LETTER A (U+0410)`."""
    return f"{unicodedata.name(char, 'a character without a name')} (U+{ord(char):04X})"


def lookalike(text: str) -> int | None:
    """Index of the first character that passes for an ASCII one: full-width, foreign digits, Cyrillic among Latin."""
    mixed = {
        index
        for word in _RUN.finditer(text)
        if any(char.isascii() for char in word.group())
        for index in range(word.start(), word.end())
    }
    for index, char in enumerate(text):
        if not char.isascii() and (_stands_for_ascii(char) or (index in mixed and _is_confusable(char))):
            return index
    return None


def _stands_for_ascii(char: str) -> bool:
    folded = unicodedata.normalize("NFKC", char)
    return char.isdecimal() or (folded.isascii() and folded.strip() != "")


def _is_confusable(char: str) -> bool:
    return unicodedata.name(char, "").partition(" ")[0] in _ALPHABETS_LIKE_LATIN
