"""Where a metric ends in a statement: queries are taken as they stand, up to the next word or sign of ours."""

from __future__ import annotations

import re
from dataclasses import dataclass

WORDS = frozenset({"and", "or", "not", "falling", "rising"})
"""Words that end a metric and are never one."""

closing = {"(": ")", "[": "]", "{": "}"}
word_form = re.compile(r"[A-Za-z_:][A-Za-z0-9_:]*")
name_form = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
blank = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Malformed:
    """Why a text is no statement. `at` counts characters from 0."""

    at: int
    message: str
    hint: str


def skip_blanks(text: str, at: int) -> int:
    """The next place that is no blank, or the end."""
    found = blank.match(text, at)
    return found.end() if found is not None else at


def word_at(text: str, at: int) -> str:
    """The word that begins here, or nothing."""
    found = word_form.match(text, at)
    return found[0] if found is not None else ""


def metric_end(text: str, start: int) -> int | Malformed:
    """The end of the metric that begins at `start`: the next comparison, word of ours or bracket that closes."""
    at = start
    while at < len(text):
        char, word = text[at], word_at(text, at)
        if char in ")]}<>=!" or word in WORDS:
            break
        end = _whole(text, at) if char in "\"'`([{#" else at + max(1, len(word))
        if isinstance(end, Malformed):
            return end
        at = end
    return at


def bracket_end(text: str, start: int) -> int | Malformed:
    """Behind the bracket that closes the one at `start`, past those inside it."""
    open_at = [start]
    at = start + 1
    while open_at:
        if at >= len(text):
            opened = text[open_at[-1]]
            return Malformed(
                open_at[-1], f"found {opened!r} and no {closing[opened]!r}, expected both", "close the bracket"
            )
        char = text[at]
        if char in closing:
            open_at.append(at)
        elif char in ")]}":
            wanted = closing[text[open_at.pop()]]
            if char != wanted:
                return Malformed(at, f"found {char!r}, expected {wanted!r}", "close the brackets in their order")
        elif char in "\"'`#":
            end = _whole(text, at)
            if isinstance(end, Malformed):
                return end
            at = end
            continue
        at += 1
    return at


def string_end(text: str, start: int) -> int | Malformed:
    """Behind the quote that closes the one at `start`; a backslash takes the next character with it."""
    quote, at = text[start], start + 1
    while at < len(text):
        if text[at] == "\\" and quote != "`":
            at += 2
        elif text[at] == quote:
            return at + 1
        else:
            at += 1
    return Malformed(start, f"found {quote!r} and no second one, expected both", "close the quote")


def _whole(text: str, at: int) -> int | Malformed:
    """Behind the string or the brackets that begin here."""
    if text[at] in closing:
        return bracket_end(text, at)
    if text[at] == "#":
        return Malformed(at, "found '#', expected no comment", "remove the comment")
    return string_end(text, at)
