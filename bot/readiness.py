"""Whether this process can do its work: what /readyz asks. Every part says for itself why it is not ready.

The words are fixed: addresses, names of machines and errors of libraries stay in the log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import redis

from bot.messages import SENTENCES
from policies.errors import StoreUnavailable
from workers.health import alive, check_write
from workers.store import persistence

ASK = "ask"


@dataclass(frozen=True, slots=True)
class Part:
    """One thing that must work; `why` is empty when it does."""

    name: str
    why: str = ""

    @property
    def ready(self) -> bool:
        """It works."""
        return not self.why


class Readiness:
    """Asks every part anew. `slack` gives why Slack is not connected, "" when it is; None in HTTP mode."""

    def __init__(self, client: redis.Redis, slack: Callable[[], str] | None) -> None:
        self._redis = client
        self._slack = slack

    def parts(self) -> tuple[Part, ...]:
        """Redis, its persistence, a worker for questions and plans, and the connection to Slack."""
        found = [self._asked("redis", self._store), self._asked("persistence", self._persistence)]
        found.append(self._asked("ask", self._workers))
        if self._slack is not None:
            found.append(Part("slack", self._slack()))
        return tuple(found)

    @staticmethod
    def _asked(name: str, question: Callable[[], str]) -> Part:
        try:
            return Part(name, question())
        except StoreUnavailable:
            return Part(name, "redis cannot be reached or written")

    def _store(self) -> str:
        check_write(self._redis)
        return ""

    def _persistence(self) -> str:
        wrong = [f for f in persistence(self._redis) if f.effect == "refuse"]
        told = (f"{f.values['setting']} is {f.values['found'] or 'unreadable'}" for f in wrong if f.code in SENTENCES)
        return ", ".join(f"{one}, so entries may be lost" for one in told)

    def _workers(self) -> str:
        return "" if alive(self._redis, ASK) else f"no worker serves the queue `{ASK}`"
