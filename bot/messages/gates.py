"""What a gate read, and what it expected."""

from __future__ import annotations

SENTENCES: dict[str, str] = {}
