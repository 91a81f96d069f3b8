"""The slow tick: every instance is scraped once in a while, by one process of all, and no host more often than said."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from uuid import uuid4

import redis
import structlog

from policies.errors import StoreUnavailable
from policies.finding import Finding
from policies.metrics.samples import Scrape
from workers.life import has_ended, own_life
from workers.metrics.recorder import Recorder
from workers.store import translated

LOG = structlog.get_logger(__name__)
DUE = "clawback:scrape-due"
RUNS = "clawback:scrape-runs"
AWAY = "clawback:scrape-away:"
# longer than a round can take: connect, ask, store; a process that ended before is seen to have ended
RUN_MS = 120_000
MOST_PAUSE_S = 300.0  # a host that is away is asked again after at most this time

# End: KEYS the lock, ARGV who holds it.
END = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
"""


class SlowTick:
    """Called once a second by every worker that may scrape; returns at once. Units: every_s in seconds."""

    def __init__(self, client: redis.Redis, recorder: Recorder, every_s: float) -> None:
        self._redis = client
        self._recorder = recorder
        self._every_s = every_s
        self._end = client.register_script(END)
        self._thread: threading.Thread | None = None

    def __call__(self) -> bool:
        """Begin a round when one is due and nobody is at it; True when this process began one.

        Raises: StoreUnavailable.
        """
        if self._thread is not None and self._thread.is_alive():
            return False
        mine = f"{own_life()} {uuid4().hex}"
        with translated():
            # asked in this order, a round that takes longer than the time between two of them puts off the next
            if not self._free() or not self._redis.set(DUE, "1", nx=True, px=round(self._every_s * 1000)):
                return False
            if not self._redis.set(RUNS, mine, nx=True, px=RUN_MS):
                return False
        self._thread = threading.Thread(target=self._round, args=(mine,), name="slow-tick", daemon=True)
        self._thread.start()
        return True

    def join(self, timeout_s: float) -> bool:
        """Wait for the round that runs; True when none does any more."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._thread is None or not self._thread.is_alive()

    def _free(self) -> bool:
        holder = self._redis.get(RUNS)
        if holder is None:
            return True
        text = holder.decode() if isinstance(holder, bytes) else str(holder)
        if has_ended(text.partition(" ")[0]):
            self._end(keys=[RUNS], args=[text])
            return True
        return False

    def _round(self, mine: str) -> None:
        try:
            instances = [i for i in self._recorder.instances() if not self._paused(i.partition("@")[2])]
            self._remember(self._recorder.take(instances))
        except StoreUnavailable as error:
            LOG.info("scrapes wait for the store", why=error.message)
        except Exception:
            LOG.exception("a round of scrapes ended with an error; the next one comes")
        finally:
            try:
                with translated():
                    self._end(keys=[RUNS], args=[mine])
            except StoreUnavailable as error:
                LOG.info("the end of a round is not told, it ends by its time", why=error.message)

    def _paused(self, host: str) -> bool:
        with translated():
            return self._redis.exists(f"{AWAY}{host}:pause") == 1

    def _remember(self, found: Mapping[str, Scrape | Finding]) -> None:
        """A host that is away is said once and asked ever more seldom; one that is back is said once."""
        away = {
            instance.partition("@")[2]: answer
            for instance, answer in found.items()
            if isinstance(answer, Finding) and answer.code == "metrics.host-away"
        }
        for host in dict.fromkeys(instance.partition("@")[2] for instance in found):
            with translated():
                if host not in away:
                    if self._redis.delete(AWAY + host):
                        LOG.info("a host is scraped again", host=host)
                    continue
                times = int(self._redis.incr(AWAY + host))
                self._redis.expire(AWAY + host, int(MOST_PAUSE_S * 4))
                pause_s = min(MOST_PAUSE_S, self._every_s * 2 ** min(times, 10))
                self._redis.set(f"{AWAY}{host}:pause", "1", px=round(pause_s * 1000))
            if times == 1:
                LOG.info("a host cannot be scraped, it is asked more seldom", host=host, why=away[host].values["error"])
