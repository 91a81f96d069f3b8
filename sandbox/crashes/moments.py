"""Moments of a change as its ledger tells them, and the ledger as it grows, read on the store's own socket."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

Json = dict[str, Any]
STREAM = "clawback:ledger"
LEASE = "clawback:lease:"
BLOCK_MS = 250
ENDED = frozenset({
    "refused", "nothing_to_do", "denied", "expired", "succeeded", "rolled_back", "failed", "aborted", "held",
})  # fmt: skip


def moment(event: Json) -> str:
    """The name of an event inside its change: its kind, the step and the gate that it is about."""
    step = f"{event['part']}-{event['index']}" if "index" in event else ""
    resumed = "resumed" if event.get("resumed") else ""
    return " ".join(part for part in (str(event["kind"]), step, str(event.get("gate") or ""), resumed) if part)


class Watch:
    """Follows the ledger of one data folder. A store that is away is met again when it is back."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self._client: redis.Redis | None = None
        self.seq = 0

    def pull(self) -> list[Json]:
        """Entries that were not seen yet; waits a moment for the first. Empty too while the store is away."""
        try:
            answer: Any = self._connected().xread({STREAM: f"{self.seq}-0"}, block=BLOCK_MS)
        except (redis.RedisError, OSError):
            self.close()
            return []
        rows = answer[0][1] if answer else []
        found = [json.loads(fields[b"entry"]) for _, fields in rows]
        if found:
            self.seq = int(found[-1]["seq"])
        return found

    def everything(self) -> list[Json]:
        """Every entry from the first on.

        Raises: redis.RedisError, OSError.
        """
        rows: Any = self._connected().xrange(STREAM)
        return [json.loads(fields[b"entry"]) for _, fields in rows]

    def holder(self, instance: str) -> int | None:
        """The process that holds the lease on an instance; None: nobody, or the store is away."""
        try:
            owner: Any = self._connected().hget(LEASE + instance, "owner")
        except (redis.RedisError, OSError):
            self.close()
            return None
        return int(owner.decode().rpartition(":")[2]) if owner else None

    def close(self) -> None:
        """Leave; the next look connects again."""
        if self._client is not None:
            with contextlib.suppress(redis.RedisError, OSError):
                self._client.close()
        self._client = None

    def _connected(self) -> redis.Redis:
        if self._client is None:
            password = (self._data / "password").read_text(encoding="ascii")
            path = str(self._data / "valkey.sock")
            never = Retry(NoBackoff(), 0)
            self._client = redis.Redis(unix_socket_path=path, password=password, socket_timeout=1.0, retry=never)
        return self._client
