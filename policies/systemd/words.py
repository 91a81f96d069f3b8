"""Splitting a directive's value into words, with quotes and C escapes, as systemd does.

Source: systemd 252, src/basic/extract-word.c (EXTRACT_UNQUOTE, EXTRACT_CUNESCAPE) and src/basic/escape.c.
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.systemd.text import BLANKS

_SIMPLE = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, '"': 34, "'": 39, "s": 32}


@dataclass(frozen=True, slots=True)
class Word:
    """One word after unquoting, and where it began in the value."""

    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class Words:
    """The words up to the end, or up to the first one that is malformed: systemd keeps those before it."""

    words: tuple[Word, ...]
    malformed: bool


def split(value: str, *, escapes: bool = True) -> Words:
    """Words of `value`. With `escapes` C escapes are read, without them a backslash keeps the next character."""
    found: list[Word] = []
    at = 0
    while True:
        while at < len(value) and value[at] in BLANKS:
            at += 1
        if at >= len(value):
            return Words(tuple(found), malformed=False)
        taken = _word(value, at, escapes)
        if taken is None:
            return Words(tuple(found), malformed=True)
        raw, end = taken
        found.append(Word(raw.decode("utf-8", "surrogateescape"), at))
        at = end


def _word(value: str, at: int, escapes: bool) -> tuple[bytes, int] | None:
    """Bytes of the word that begins at `at`, and where it ends; None when it is malformed."""
    out = bytearray()
    quote = ""
    while at < len(value):
        c = value[at]
        if c == "\\":
            if at + 1 >= len(value):
                return None
            if escapes:
                one = _escape(value, at + 1)
                if one is None:
                    return None
                piece, length = one
                out += piece
                at += 1 + length
            else:
                out += value[at + 1].encode("utf-8", "surrogateescape")
                at += 2
            continue
        if quote:
            if c == quote:
                quote = ""
            else:
                out += c.encode("utf-8", "surrogateescape")
        elif c in "'\"":
            quote = c
        elif c in BLANKS:
            return bytes(out), at
        else:
            out += c.encode("utf-8", "surrogateescape")
        at += 1
    return None if quote else (bytes(out), at)


def _escape(value: str, at: int) -> tuple[bytes, int] | None:
    """Bytes of the escape whose letter stands at `at`, and its length; None when there is no such escape."""
    c = value[at]
    if c in _SIMPLE:
        return bytes([_SIMPLE[c]]), 1
    if c == "x":
        code = _number(value[at + 1 : at + 3], 2, 16)
        return (bytes([code]), 3) if code else None
    if c in "uU":
        digits = 4 if c == "u" else 8
        code = _number(value[at + 1 : at + 1 + digits], digits, 16)
        if not code or (c == "U" and not _is_character(code)):
            return None
        return chr(code).encode("utf-8", "surrogatepass"), 1 + digits
    if c in "01234567":
        code = _number(value[at : at + 3], 3, 8)
        return (bytes([code]), 3) if code and code <= 255 else None
    return None


def _number(digits: str, count: int, base: int) -> int | None:
    allowed = "01234567" if base == 8 else "0123456789abcdefABCDEF"
    if len(digits) != count or any(d not in allowed for d in digits):
        return None
    return int(digits, base)


def _is_character(code: int) -> bool:
    return code < 0x110000 and not (0xD800 <= code <= 0xDFFF or 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE)
