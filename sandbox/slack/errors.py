"""How the stand-in says no: the platform's error names, and mistakes of whoever drives it."""

from __future__ import annotations

from typing import Any


class SlackError(Exception):
    """An `ok: false` answer with the platform's error name and further keys."""

    def __init__(self, error: str, **extra: Any) -> None:
        super().__init__(error)
        self.error = error
        self.extra = extra


class PersonError(Exception):
    """A person cannot do that in the client, e.g. click a button that is not on the message."""
