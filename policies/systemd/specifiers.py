"""Specifiers such as %i in unit files.

Those that follow from the unit's name are computed; those of the host are given. Source: systemd 252, systemd.unit(5)
and src/core/unit-printf.c.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

# what the system manager of every host has; a user manager's values have to be given
SYSTEM = {
    "C": "/var/cache", "E": "/etc", "L": "/var/log", "S": "/var/lib", "t": "/run", "T": "/tmp", "V": "/var/tmp",  # noqa: S108 names, not used as folders
    "u": "root", "U": "0", "g": "root", "G": "0", "h": "/root", "s": "/bin/sh",
}  # fmt: skip
_OF_THE_HOST = frozenset("aAbBcCdEgGhHlLmMoqrRsStTuUvVwWyY")
_ESCAPED = re.compile(rb"\\x([0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class Resolved:
    """Text with its specifiers replaced.

    `unknown`: letters whose value only the host knows, left as they are. `invalid`: the first letter or digit that is
    no specifier at all; systemd ignores the whole word then.
    """

    text: str
    unknown: tuple[str, ...]
    invalid: str | None


def resolve(text: str, unit_name: str, host: Mapping[str, str] = SYSTEM) -> Resolved:
    """Replaces specifiers; a percent sign before anything but a letter or digit stands for itself."""
    own = of_name(unit_name)
    out: list[str] = []
    unknown: list[str] = []
    invalid: str | None = None
    at = 0
    while at < len(text):
        c = text[at]
        if c != "%" or at + 1 >= len(text):
            out.append(c)
            at += 1
            continue
        letter = text[at + 1]
        at += 2
        if letter == "%":
            out.append("%")
        elif letter in own:
            out.append(own[letter])
        elif letter in host:
            out.append(host[letter])
        else:
            out.append("%" + letter)
            if letter in _OF_THE_HOST:
                unknown.append(letter)
            elif letter.isascii() and letter.isalnum():
                invalid = invalid or letter
    return Resolved("".join(out), tuple(dict.fromkeys(unknown)), invalid)


def of_name(unit_name: str) -> dict[str, str]:
    """The specifiers that follow from `prefix@instance.service`."""
    stem = unit_name.rpartition(".")[0]
    prefix, _, instance = stem.partition("@")
    last = prefix.rpartition("-")[2]
    return {
        "n": unit_name,
        "N": stem,
        "p": prefix,
        "P": unescape(prefix),
        "i": instance,
        "I": unescape(instance),
        "j": last,
        "J": unescape(last),
        "f": "/" + unescape(instance or prefix).lstrip("/"),
    }


def unescape(name: str) -> str:
    """`a-b\\x2dc` as `a/b-c`, which is how systemd writes paths in unit names."""
    raw = name.replace("-", "/").encode("utf-8", "surrogateescape")
    return _ESCAPED.sub(lambda m: bytes([int(m[1], 16)]), raw).decode("utf-8", "surrogateescape")
