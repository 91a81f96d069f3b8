"""The slow tick: every instance is scraped once in a while, by one process of all, and no host more often than said."""

from __future__ import annotations

from collections.abc import Mapping

import redis
import structlog

from policies.finding import Finding
from policies.metrics.samples import Scrape
from workers.metrics.recorder import Recorder
from workers.store import translated
from workers.turns import Turns

LOG = structlog.get_logger(__name__)
DUE = "clawback:scrape-due"
RUNS = "clawback:scrape-runs"
AWAY = "clawback:scrape-away:"
MOST_PAUSE_S = 300.0  # a host that is away is asked again after at most this time


class SlowTick(Turns):
    """Called once a second by every worker that may scrape; returns at once. Units: every_s in seconds."""

    def __init__(self, client: redis.Redis, recorder: Recorder, every_s: float) -> None:
        super().__init__(client, "scrape", self._scrape, every_s)
        self._recorder = recorder
        self._pause_s = every_s

    def _scrape(self) -> None:
        instances = [i for i in self._recorder.instances() if not self._paused(i.partition("@")[2])]
        self._remember(self._recorder.take(instances))

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
                pause_s = min(MOST_PAUSE_S, self._pause_s * 2 ** min(times, 10))
                self._redis.set(f"{AWAY}{host}:pause", "1", px=round(pause_s * 1000))
            if times == 1:
                LOG.info("a host cannot be scraped, it is asked more seldom", host=host, why=away[host].values["error"])
