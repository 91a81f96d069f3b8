"""What systemd calls valid text, names and assignments; shared by the two parsers.

Text is `str` decoded from utf-8 with surrogateescape, so that broken bytes stay visible as lone surrogates.
Source: systemd 252, src/basic/utf8.c and src/basic/env-util.c.
"""

from __future__ import annotations

import re

BLANKS = " \t\n\r"
ARG_MAX_BYTES = 2_097_152  # sysconf(_SC_ARG_MAX) on Linux with the default stack limit

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_text(value: str) -> bool:
    """Whether systemd takes this for utf-8: no broken bytes, no surrogates, no non-characters."""
    for character in value:
        code = ord(character)
        if 0xD800 <= code <= 0xDFFF or 0xFDD0 <= code <= 0xFDEF or code & 0xFFFE == 0xFFFE:
            return False
    return True


def is_name(name: str) -> bool:
    """Whether this is a valid name of an environment variable."""
    return _NAME.fullmatch(name) is not None and len(name) <= ARG_MAX_BYTES - 2


def is_value(value: str) -> bool:
    """Whether this is a valid value: any text, control characters included."""
    return is_text(value) and len(value.encode("utf-8", "surrogateescape")) <= ARG_MAX_BYTES - 3


def is_assignment(word: str) -> bool:
    """Whether this is NAME=VALUE with both parts valid."""
    name, equals, value = word.partition("=")
    return equals == "=" and is_name(name) and is_value(value)


def quoted(word: str) -> str:
    """A word for a message: broken bytes made visible, cut at 200 characters."""
    shown = word.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return shown if len(shown) <= 200 else shown[:199] + "…"
