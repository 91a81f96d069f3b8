"""Who is alive: a beat of every worker once a second, and whether Redis takes writes."""

from __future__ import annotations

from collections.abc import Iterable

import redis

from workers.queue import QUEUES, FixedQueue
from workers.store import translated

ALIVE = "clawback:alive:"
CHECK = "clawback:write-check"
STALE_S = 15.0  # a worker that fell silent for so long is taken for dead
KEPT_S = 60


def beat(client: redis.Redis, queues: Iterable[str], name: str) -> None:
    """Say that the process `name` works on these queues now. Raises: StoreUnavailable."""
    with translated():
        now = int(client.time()[0])
        with client.pipeline(transaction=False) as pipe:
            for queue in queues:
                pipe.zadd(ALIVE + queue, {name: now})
                pipe.zremrangebyscore(ALIVE + queue, "-inf", now - KEPT_S)
                pipe.expire(ALIVE + queue, KEPT_S)
            pipe.execute()


def leave(client: redis.Redis, queues: Iterable[str], name: str) -> None:
    """Say that the process ended in order. Raises: StoreUnavailable."""
    with translated():
        for queue in queues:
            client.zrem(ALIVE + queue, name)


def alive(client: redis.Redis, queue: str) -> int:
    """How many processes work on a queue, by the server's clock. Raises: StoreUnavailable."""
    with translated():
        now = int(client.time()[0])
        return int(client.zcount(ALIVE + queue, now - STALE_S, "+inf"))


def check_write(client: redis.Redis) -> None:
    """Write a key that means nothing. Raises: StoreUnavailable."""
    with translated():
        client.set(CHECK, "1", ex=KEPT_S)


def queue_lengths(client: redis.Redis) -> dict[str, int]:
    """Bells that wait, by queue. Raises: StoreUnavailable."""
    with translated():
        return {queue: int(client.llen(f"{FixedQueue.redis_queue_namespace_prefix}{queue}")) for queue in QUEUES}
