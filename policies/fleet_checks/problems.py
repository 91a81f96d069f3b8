"""The error list of a fleet file, and the words shared by everything that adds to it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field

from policies.model import Model

Path = tuple[str | int, ...]
"""Where a value stands: `("services", "decode", "needs", 0)`."""


class FleetError(Model):
    """One error of a fleet file. `code` is stable; `message` says what was expected, `hint` what to write."""

    file: str
    line: int
    code: str
    message: str
    hint: str


def quote(text: str) -> str:
    """Text as it was typed, in quotes, with control characters escaped, cut at 60 characters."""
    cut = text if len(text) <= 60 else text[:57] + "..."
    inner = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)
    return f"'{inner}'"


def listed(names: Iterable[str]) -> str:
    """Names for a person: at most twelve, then how many more."""
    known = list(names)
    if not known:
        return "none are defined"
    more = f" and {len(known) - 12} more" if len(known) > 12 else ""
    return ", ".join(known[:12]) + more


def nearest(word: str, names: Iterable[str]) -> str | None:
    """The name that was probably meant, or None. Long input is not compared: that would be slow."""
    if len(word) > 64:
        return None
    lowered = {name.lower(): name for name in list(names)[:200]}
    found = difflib.get_close_matches(word.lower(), list(lowered), n=1, cutoff=0.6)
    return lowered[found[0]] if found else None


def suggestion(word: str, names: Iterable[str]) -> str:
    """Hint for an unknown name: the nearest known one, or all of them."""
    known = list(names)
    close = nearest(word, known)
    if close is not None:
        return f"did you mean {quote(close)}?"
    return f"write one of: {listed(known)}" if known else "define it first, or remove this line"


@dataclass(slots=True)
class Problems:
    """Collects errors. `lines` remembers the line of every value read, by its path."""

    file: str
    errors: list[FleetError] = field(default_factory=list)
    lines: dict[Path, int] = field(default_factory=dict)

    def add(self, path: Path, code: str, message: str, hint: str) -> None:
        """Record an error at the line of `path`, or of the nearest thing around it that has a line."""
        at = path
        while at and at not in self.lines:
            at = at[:-1]
        self.add_line(self.lines.get(at, 1), code, f"{dotted(path)}: {message}" if path else message, hint)

    def add_line(self, line: int, code: str, message: str, hint: str) -> None:
        """Record an error at a line."""
        self.errors.append(FleetError(file=self.file, line=line, code=code, message=message, hint=hint))

    def unknown(self, path: Path, code: str, noun: str, word: str, names: Iterable[str]) -> None:
        """Record a name that does not exist."""
        known = list(names)
        self.add(
            path,
            code,
            f"{quote(word)} is not a {noun} of this fleet, expected one of: {listed(known)}",
            suggestion(word, known),
        )

    def sorted(self) -> tuple[FleetError, ...]:
        """All errors in file order, each once."""
        unique = dict.fromkeys(self.errors)
        return tuple(sorted(unique, key=lambda e: (e.line, e.code, e.message)))


def dotted(path: Path) -> str:
    """A path for a person: `services.decode.needs[0]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + quote(part)[1:-1]
    return text
