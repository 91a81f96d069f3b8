"""Which Slack the things in this store belong to: what the bot that listens for it was told."""

from __future__ import annotations

import redis

from workers.ledger import text_of
from workers.store import translated

WORLD = "clawback:world"


def remember(client: redis.Redis, api_url: str) -> None:
    """Keep the base address of the Web API. Raises: StoreUnavailable."""
    with translated():
        client.set(WORLD, api_url)


def remembered(client: redis.Redis) -> str | None:
    """The address that was kept last; None when no bot ever listened. Raises: StoreUnavailable."""
    with translated():
        found = client.get(WORLD)
    return text_of(found) if found is not None else None
