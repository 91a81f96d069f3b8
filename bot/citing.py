"""The expressions behind `citing`: up to the next option, split at commas that stand in no bracket."""

from __future__ import annotations

import re

from bot.escape import named, shown
from bot.normalise import Unreadable
from bot.words import Word

_ALLOWED = re.compile(r"[A-Za-z0-9_:.,<>=!()\[\]{}+*/%^~ -]*")
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_HINT = "write citing EXPR, EXPR; an expression with quotes or an option word in it goes in '...'"


def expressions(words: list[Word]) -> tuple[str, ...]:
    """The expressions in order, each as typed.

    Raises:
        Unreadable: nothing there, an empty one, a bracket that does not close, a character that needs quotes.
    """
    found: list[str] = []
    text, quoted = "", False  # of the expression being read
    open_brackets: list[str] = []
    for word in words:
        if not _ALLOWED.fullmatch(word.bare):
            raise _refused(f"{named(word.bare)} has characters that need quotes")
        if text and not word.glued:
            text += " "
        for char in word.bare:
            if char == "," and not open_brackets:
                found.append(_whole(text))
                text, quoted = "", False
                continue
            if quoted:
                raise _refused(f"a comma is missing before {named(word.bare)}")
            _follow(char, open_brackets)
            text += char
        if word.quoted is not None:
            if text.strip() or open_brackets:
                raise _refused(f"a quoted text inside an expression: {shown(word.text)}")
            text, quoted = word.quoted, True
    if open_brackets:
        raise _refused(f'a "{open_brackets[-1]}" is missing')
    found.append(_whole(text))
    return tuple(found)


def _follow(char: str, open_brackets: list[str]) -> None:
    if char in _BRACKETS:
        open_brackets.append(_BRACKETS[char])
    elif char in _BRACKETS.values() and (not open_brackets or open_brackets.pop() != char):
        raise _refused(f'"{char}" closes no bracket')


def _whole(text: str) -> str:
    if not text.strip():
        raise _refused("an expression is missing")
    return text.strip()


def _refused(message: str) -> Unreadable:
    return Unreadable("bad-citing", message, hint=_HINT)
