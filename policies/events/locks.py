"""What is recorded of locks: that somebody closed a part of the fleet to changes, and opened it again."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

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


class RollbackLock(Model):
    """What a rollback leaves: no deploy of this service until an approver has confirmed something of what it took away.

    Carried by the success of the rollback; the lock of `C-7` is `rl-7`. taken: versions that ran before it.
    brought: the changes that had deployed them, as far as they are recorded.
    """

    service: str
    instances: tuple[str, ...]
    taken: tuple[str, ...] = Field(min_length=1)
    brought: tuple[str, ...] = ()
    owner: Actor
    because: str | None = None
    where: Where


class Confirmed(Model):
    """An approver's word that opens the lock of a rollback: what it took away is fixed, or is not deployed again."""

    kind: Literal["confirmed"] = "confirmed"
    actor: Actor
    service: str
    taken: tuple[str, ...]


class Unlocked(Model):
    """Open again, by somebody's word. A lock whose `until` is over ends by itself, and nothing is recorded then."""

    kind: Literal["unlocked"] = "unlocked"
    actor: Actor
