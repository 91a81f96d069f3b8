"""What a unit's files say that a person should know."""

from __future__ import annotations

SENTENCES: dict[str, str] = {}
