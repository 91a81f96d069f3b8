"""Recorded scrapes in Redis: one sorted set an instance, by time, bounded in age, number and bytes. Not in the ledger.

What is lost here is a gap in measurements, which is said wherever it shows; nothing is decided on it in silence.
"""

from __future__ import annotations

from collections.abc import Iterable

import redis
import structlog

from policies.metrics.samples import Scrape
from workers.metrics.codec import Unreadable, pack, unpack
from workers.store import translated

LOG = structlog.get_logger(__name__)
KEY = "clawback:scrapes:"
BYTES = "clawback:scrapes-bytes:"
MOST = 10_000
MOST_BYTES = 16 * 1024 * 1024
APART_MS = 200  # looks that several parts of a worker take at once are one scrape

# Keep: KEYS the set and its count of bytes. ARGV: time, scrape, oldest time, most, most bytes, apart, seconds to live.
# The oldest go first; 0 when one of this moment is there already.
KEEP = """
local at = tonumber(ARGV[1])
if redis.call('ZCOUNT', KEYS[1], at - ARGV[6], at + ARGV[6]) > 0 then return 0 end
redis.call('ZADD', KEYS[1], at, ARGV[2])
local bytes = redis.call('INCRBY', KEYS[2], #ARGV[2])
local count = redis.call('ZCARD', KEYS[1])
while count > 0 do
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  local young = tonumber(oldest[2]) >= tonumber(ARGV[3])
  if young and count <= tonumber(ARGV[4]) and bytes <= tonumber(ARGV[5]) then break end
  redis.call('ZREM', KEYS[1], oldest[1])
  bytes = redis.call('DECRBY', KEYS[2], #oldest[1])
  count = count - 1
end
redis.call('EXPIRE', KEYS[1], ARGV[7])
redis.call('EXPIRE', KEYS[2], ARGV[7])
return 1
"""


class Kept:
    """The scrapes of every instance. Units: keep_s is how long one stays, in seconds."""

    def __init__(self, client: redis.Redis, *, keep_s: float, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._redis = client
        self._keep = client.register_script(KEEP)
        self._keep_s = keep_s
        self._most = most
        self._most_bytes = most_bytes

    def add(self, scrapes: Iterable[Scrape]) -> int:
        """Keep them, and let go of what is too old or too much; gives how many are new.

        Raises: StoreUnavailable.
        """
        new = 0
        for scrape in scrapes:
            at = round(scrape.at * 1000)
            oldest = at - round(self._keep_s * 1000)
            with translated():
                new += self._keep(
                    keys=[KEY + scrape.instance, BYTES + scrape.instance],
                    args=[at, pack(scrape), oldest, self._most, self._most_bytes, APART_MS, int(self._keep_s * 2) + 60],
                )
        return new

    def between(self, instance: str, start: float, end: float) -> tuple[Scrape, ...]:
        """The scrapes of an instance in a window, both ends included, oldest first. One that is damaged is left out.

        Units: epoch seconds. Raises: StoreUnavailable.
        """
        with translated():
            found = self._redis.zrangebyscore(KEY + instance, round(start * 1000), round(end * 1000))
        return self._read(found, instance)

    def _read(self, found: Iterable[object], instance: str) -> tuple[Scrape, ...]:
        scrapes = []
        for data in found:
            try:
                scrapes.append(unpack(data if isinstance(data, bytes) else b"", instance))
            except Unreadable as error:
                LOG.warning("a recorded scrape is damaged and left out", instance=instance, why=str(error))
        return tuple(scrapes)

    def newest(self, instance: str, before: float) -> Scrape | None:
        """The last scrape before a moment. Raises: StoreUnavailable."""
        with translated():
            found = self._redis.zrevrangebyscore(KEY + instance, f"({round(before * 1000)}", "-inf", start=0, num=1)
        return next(iter(self._read(found, instance)), None)
