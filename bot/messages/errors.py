"""Errors on the way: said to the person who asked, with what was not done."""

from __future__ import annotations

SENTENCES: dict[str, str] = {
    "error.told": "{message}",
    "error.told-with-hint": "{message}; {hint}",
    "error.unexpected": (
        "something went wrong here; reference {reference:code}; look at the card, or ask `status`, before you try again"
    ),
    "error.late": (
        "something went wrong here after {change} was recorded; reference {reference:code}; look at its thread"
    ),
}
