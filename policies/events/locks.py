"""What is recorded of locks: that somebody closed a part of the fleet to changes, and opened it again."""

from __future__ import annotations

from typing import Literal

from policies.intents import Actor, Where
from policies.model import Model


class Locked(Model):
    """Closed. Subject: `lk-N`. instances: service@host, as the scope was read then. until: epoch seconds or None."""

    kind: Literal["locked"] = "locked"
    scope: str
    instances: tuple[str, ...]
    actor: Actor
    because: str
    where: Where
    until: float | None = None


class Unlocked(Model):
    """Open again, by somebody's word. A lock whose `until` is over ends by itself, and nothing is recorded then."""

    kind: Literal["unlocked"] = "unlocked"
    actor: Actor
