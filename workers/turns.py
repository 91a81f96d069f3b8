"""Turns: work that one process of all takes now and then, from a thread of its own, and never two at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from uuid import uuid4

import redis
import structlog

from policies.errors import StoreUnavailable
from workers.life import has_ended, own_life
from workers.store import translated

LOG = structlog.get_logger(__name__)
# longer than a turn can take: connect, ask, store; a process that ended before is seen to have ended
RUN_MS = 120_000

# End: KEYS the lock, ARGV who holds it.
END = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
"""


class Turns:
    """Called once a second by every process that may take them; returns at once. Units: every_s in seconds.

    name: of the work, in the store and in the log.
    """

    def __init__(self, client: redis.Redis, name: str, work: Callable[[], object], every_s: float) -> None:
        self._redis = client
        self._name = name
        self._work = work
        self._every_s = every_s
        self._due, self._runs = f"clawback:{name}-due", f"clawback:{name}-runs"
        self._end = client.register_script(END)
        self._thread: threading.Thread | None = None

    def __call__(self) -> bool:
        """Begin a turn when one is due and nobody is at it; True when this process began one.

        Raises: StoreUnavailable.
        """
        if self._thread is not None and self._thread.is_alive():
            return False
        mine = f"{own_life()} {uuid4().hex}"
        with translated():
            # asked in this order, a turn that takes longer than the time between two of them puts off the next
            if not self._free() or not self._redis.set(self._due, "1", nx=True, px=round(self._every_s * 1000)):
                return False
            if not self._redis.set(self._runs, mine, nx=True, px=RUN_MS):
                return False
        self._thread = threading.Thread(target=self._turn, args=(mine,), name=self._name, daemon=True)
        self._thread.start()
        return True

    def join(self, timeout_s: float) -> bool:
        """Wait for the turn that runs; True when none does any more."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._thread is None or not self._thread.is_alive()

    def _free(self) -> bool:
        holder = self._redis.get(self._runs)
        if holder is None:
            return True
        text = holder.decode() if isinstance(holder, bytes) else str(holder)
        if has_ended(text.partition(" ")[0]):
            self._end(keys=[self._runs], args=[text])
            return True
        return False

    def _turn(self, mine: str) -> None:
        try:
            self._work()
        except StoreUnavailable as error:
            LOG.info("a turn waits for the store", work=self._name, why=error.message)
        except Exception:
            LOG.exception("a turn ended with an error; the next one comes", work=self._name)
        finally:
            try:
                with translated():
                    self._end(keys=[self._runs], args=[mine])
            except StoreUnavailable as error:
                LOG.info("the end of a turn is not told, it ends by its time", work=self._name, why=error.message)
