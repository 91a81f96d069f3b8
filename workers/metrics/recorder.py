"""Records scrapes: of every look at a host that asked for metrics, and on a slow tick of its own.

Recording never holds up who looks: what was seen is read and stored by a thread of the recorder. A step's own scrape
is waited for no longer than a moment. What cannot be stored or asked is a gap, which shows where it is measured.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import structlog

from policies.errors import OpsError, SettingsError, StoreUnavailable
from policies.facts import HttpAnswer, UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet
from policies.metrics.recorded import recorded
from policies.metrics.samples import Scrape, answered_scrape
from workers.executors.answers import METRICS_MAX_BYTES, HttpAsk
from workers.hosts import HOSTS_AT_ONCE, Hosts
from workers.metrics.background import Background
from workers.metrics.kept import Kept

LOG = structlog.get_logger(__name__)
ASK_S = 5.0  # an engine that takes longer for its metrics has none for this moment
STEP_S = 1.0  # a step waits no longer for its own scrape
CLOSE_S = 2.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What one instance answered."""

    instance: str
    answer: HttpAnswer | None


class Recorder:
    """Of one process. `hosts` is made when something is asked for first."""

    def __init__(self, fleet: Fleet, kept: Kept, hosts: Callable[[], Hosts]) -> None:
        self._fleet = fleet
        self._kept = kept
        self._hosts = hosts
        self._wanted = recorded(fleet)
        self._aside = Background("record")

    def instances(self, among: Iterable[str] | None = None) -> tuple[str, ...]:
        """Those that have a metrics url, of all or of these."""
        fleet = self._fleet
        every = [i for name, service in fleet.services.items() if service.metrics for i in fleet.instances(name)]
        wanted = set(every if among is None else among)
        return tuple(i for i in every if i in wanted)

    def seen(self, units: Mapping[str, UnitFacts]) -> None:
        """Record what a look at units gave; returns at once."""
        found = [Seen(i, a) for i, unit in units.items() for a in unit.http if a.id == "metrics"]
        if found:
            self._aside.later(lambda: self.store(found))

    def before_step(self, instances: Iterable[str]) -> None:
        """Scrape these now, so that there is a last reading from before the act; waits at most a moment."""
        thread = self._scrape(instances)
        if thread is not None:
            thread.join(STEP_S)

    def after_step(self, instances: Iterable[str]) -> None:
        """Scrape these now; returns at once."""
        self._scrape(instances)

    def _scrape(self, instances: Iterable[str]) -> threading.Thread | None:
        asked = self.instances(instances)
        if not asked:
            return None

        def work() -> None:
            try:
                self.take(asked)
            except Exception:
                LOG.exception("a step was not scraped")

        thread = threading.Thread(target=work, name="step-scrape", daemon=True)
        thread.start()
        return thread

    def take(self, instances: Sequence[str]) -> dict[str, Scrape | Finding]:
        """Scrape these now, each host once, and record it. Whole scrapes are given, a part of them is kept.

        A host that cannot be asked gives `metrics.host-away` for its instances.
        """
        by_host: dict[str, list[str]] = {}
        for instance in instances:
            by_host.setdefault(instance.partition("@")[2], []).append(instance)
        if not by_host:
            return {}
        try:
            hosts = self._hosts()
        except SettingsError as error:
            # whoever has no login to the hosts is answered from what others recorded
            away = {host: _away(host, error) for host in by_host}
            return {instance: away[host] for host, names in by_host.items() for instance in names}
        with ThreadPoolExecutor(min(HOSTS_AT_ONCE, len(by_host)), thread_name_prefix="scrape") as pool:
            parts = list(pool.map(lambda item: self._ask(hosts, *item), by_host.items()))
        found = {instance: answer for part in parts for instance, answer in part.items()}
        self.store([Seen(i, answer) for i, answer in found.items() if isinstance(answer, HttpAnswer)])
        return {i: a if isinstance(a, Finding) else answered_scrape(i, a) for i, a in found.items()}

    def _ask(self, hosts: Hosts, host: str, instances: Sequence[str]) -> dict[str, HttpAnswer | Finding]:
        asks = []
        for instance in instances:
            metrics = self._fleet.at(instance).metrics
            if metrics is not None:
                timeout_s = min(metrics.timeout_s, ASK_S)
                asks.append(HttpAsk(id=instance, url=metrics.url, timeout_s=timeout_s, max_bytes=METRICS_MAX_BYTES))
        try:
            seen = hosts.at(host).observe((), asks)
        except OpsError as error:
            return dict.fromkeys(instances, _away(host, error))
        return {answer.id: answer for answer in seen.http}

    def store(self, found: Iterable[Seen]) -> None:
        """Read and keep what was answered. An answer that is none is kept as one without series: those end there."""
        scrapes = []
        for one in found:
            scrape = answered_scrape(one.instance, one.answer)
            if isinstance(scrape, Scrape):
                scrapes.append(self._wanted.of(scrape))
            elif one.answer is not None:
                scrapes.append(Scrape(one.instance, one.answer.url, one.answer.at, ()))
        try:
            self._kept.add(scrapes)
        except StoreUnavailable as error:
            LOG.info("scrapes are not recorded", why=error.message)

    def flush(self, timeout_s: float) -> bool:
        """Wait until what was seen is stored; False when that took longer."""
        return self._aside.flush(timeout_s)

    def close(self) -> None:
        """Store what waits, for a moment."""
        self._aside.close(CLOSE_S)


def _away(host: str, error: OpsError) -> Finding:
    values: dict[str, str | int | float | None] = {"host": host, "error": error.message}
    return Finding(code="metrics.host-away", effect="warn", values=values)
