"""What may stand behind a command and its value: options in any order, each at most once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Option = Literal["on", "via", "of", "because", "citing", "ticket", "for", "anyway", "emergency", "dry"]
OPTIONS: tuple[Option, ...] = ("on", "via", "of", "because", "citing", "ticket", "for", "anyway", "emergency", "dry")


@dataclass(frozen=True, slots=True)
class Options:
    """What stands behind the value; each at most once."""

    scope: str | None = None
    order: str | None = None
    of: str | None = None
    because: str | None = None
    citing: tuple[str, ...] = ()
    ticket: str | None = None
    for_s: float | None = None
    anyway: bool = False
    emergency: bool = False
    dry: bool = False
