"""The inbox: what was received and acknowledged is kept for a day, once, whatever becomes of the process."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4

import redis

from policies.errors import NotFound, OpsError
from workers.store import translated

KEY = "clawback:inbox:"
WAITING = "clawback:inbox-waiting"
PEOPLE = "clawback:people-changed"
KEPT_S = 24 * 3600
LIMIT_BYTES = 256 * 1024

# KEYS: item, waiting set. ARGV: id, payload, nonce, kept seconds. Gives 1 for the first time.
# The same nonce again is the first call whose answer was lost.
PUT = """
local nonce = redis.call('HGET', KEYS[1], 'nonce')
if nonce then return nonce == ARGV[3] and 1 or 0 end
local now = tonumber(redis.call('TIME')[1])
redis.call('HSET', KEYS[1], 'payload', ARGV[2], 'nonce', ARGV[3])
redis.call('EXPIRE', KEYS[1], ARGV[4])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now - tonumber(ARGV[4]))
redis.call('ZADD', KEYS[2], now, ARGV[1])
return 1
"""


class TooLarge(OpsError):
    """What was received is larger than the inbox takes."""


@dataclass(frozen=True, slots=True)
class Received:
    """`id` fits into the queue. `first`: it had not been seen in the last 24 h."""

    id: str
    first: bool


class Inbox:
    """Keyed by the sender's own id (an envelope or trigger id, or anything else that is the same when it is resent)."""

    def __init__(self, client: redis.Redis) -> None:
        self._redis = client
        self._put = client.register_script(PUT)

    def put(self, key: str, payload: Mapping[str, object]) -> Received:
        """Keep `payload` under `key`, unless it is kept already.

        Raises: TooLarge, StoreUnavailable.
        """
        text = json.dumps(payload, separators=(",", ":")).encode()
        if len(text) > LIMIT_BYTES:
            raise TooLarge(f"received {len(text)} bytes, expected at most {LIMIT_BYTES}", hint="send a shorter text")
        item = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        with translated():
            first = self._put(keys=[KEY + item, WAITING], args=[item, text, uuid4().hex, KEPT_S])
        return Received(item, bool(first))

    def get(self, item: str) -> dict[str, object]:
        """The payload of a received id.

        Raises: NotFound when it is unknown or older than 24 h.
        """
        with translated():
            text = self._redis.hget(KEY + item, "payload")
        if text is None:
            raise NotFound(f"nothing was received as `{item}` in the last 24 h", hint="send it again")
        found: dict[str, object] = json.loads(text)
        return found

    def done(self, item: str) -> None:
        """It was handled: it stays known for 24 h and is no longer waiting."""
        with translated():
            self._redis.zrem(WAITING, item)

    def waiting(self, older_s: float = 0.0) -> list[str]:
        """Ids received at least `older_s` ago, by the server's clock, and not handled yet; oldest first."""
        with translated():
            now = int(self._redis.time()[0])
            found = self._redis.zrangebyscore(WAITING, now - KEPT_S, now - older_s)
        return [item.decode() if isinstance(item, bytes) else str(item) for item in found]

    def people_changed(self) -> None:
        """Count that Slack said something about people or groups, for every process that keeps such answers."""
        with translated():
            self._redis.incr(PEOPLE)

    def people_version(self) -> int:
        """How often that was."""
        with translated():
            found = self._redis.get(PEOPLE)
        return int(found) if found is not None else 0
