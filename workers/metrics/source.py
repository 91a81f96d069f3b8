"""One door for readings, from recorded scrapes or from a Prometheus server; each answer names its source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from policies.errors import NotFound
from policies.finding import Finding
from policies.fleet import Fleet
from policies.metrics.collected import Asked
from policies.metrics.measured import Measured
from policies.metrics.promql import Query, compile_query
from policies.metrics.recorded import recorded
from policies.metrics.samples import Scrape
from policies.metrics.window import FRESH_S, measure, reach_s
from workers.metrics.kept import Kept
from workers.metrics.recorder import Recorder

if TYPE_CHECKING:
    from workers.metrics.prometheus import Prometheus

# what another source may answer for: nothing was asked, and nobody refused
AWAY = frozenset({"metrics.prometheus-away", "metrics.prometheus-failed"})
FREE_UNIT = ""  # nobody said what a free query gives


class Metrics:
    """Readings of the fleet, from Prometheus where the fleet file names one, else from recorded scrapes.

    A Prometheus that is away is answered for by the scrapes, and the answer says so in its source and its problem.
    """

    def __init__(
        self, fleet: Fleet, kept: Kept, recorder: Callable[[], Recorder], prometheus: Prometheus | None
    ) -> None:
        self._fleet = fleet
        self._kept = kept
        self._recorder = recorder
        self._prometheus = prometheus
        self._recorded = recorded(fleet)

    def window(self, name_or_query: str, on: str | None = None, *, start: float, end: float) -> Measured:
        """A metric of the fleet file by its name, or a query, over a window.

        on: a service, a service@host, or None for where the metric is on (a free query: everywhere).
        Units: epoch seconds. Raises: NotFound for an unknown `on`, StoreUnavailable.
        """
        asked, instances = self._asked(name_or_query, on)
        if self._prometheus is None:
            return self._of_scrapes(asked, instances, start, end)
        found = self._prometheus.window(asked, instances, start, end)
        return self._instead(found, asked, instances, start, end)

    def scrapes(self, instance: str, start: float, end: float) -> tuple[Scrape, ...]:
        """Recorded scrapes of one instance, oldest first; they hold what is recorded and no more.

        Units: epoch seconds. Raises: StoreUnavailable.
        """
        return self._kept.between(instance, start, end)

    def take(self, instances: Sequence[str]) -> dict[str, Scrape | Finding]:
        """Scrape these instances now: whole scrapes, or why there is none. They are recorded too."""
        recorder = self._recorder()
        return recorder.take(recorder.instances(instances))

    def close(self) -> None:
        """End the connection to Prometheus."""
        if self._prometheus is not None:
            self._prometheus.close()

    def _asked(self, text: str, on: str | None) -> tuple[Asked, tuple[str, ...]]:
        metric = self._fleet.metrics.get(text)
        if metric is None:
            return Asked(text, text, FREE_UNIT), self._instances(on)
        return Asked(metric.name, metric.query, metric.unit), self._instances(on or metric.on)

    def _instances(self, on: str | None) -> tuple[str, ...]:
        every = {i: service for service in self._fleet.services for i in self._fleet.instances(service)}
        found = tuple(i for i, service in every.items() if on in {None, i, service})
        if not found:
            raise NotFound(f"`{on}` is no service and no service@host", hint="known: " + ", ".join(every))
        if on is not None:
            return found
        return tuple(i for i in found if self._fleet.services[every[i]].metrics is not None)

    def _of_scrapes(self, asked: Asked, instances: Sequence[str], start: float, end: float) -> Measured:
        early = start - reach_s(asked.query)
        scrapes = [scrape for instance in instances for scrape in self._kept.between(instance, early, end)]
        if not scrapes:  # how long ago the last one was
            before = (self._kept.newest(instance, early) for instance in instances)
            scrapes = [scrape for scrape in before if scrape is not None]
        # two ticks, or as long as a gauge may be old
        fresh_s = max(FRESH_S, 2 * self._fleet.timing.scrape_s)
        found = measure(asked, scrapes, instances=instances, start=start, end=end, fresh_s=fresh_s)
        left = self._never_recorded(asked)
        if found.readings or left is None or found.problem is None or found.problem.code != "metrics.missing":
            return found
        return found.model_copy(update={"problem": left})

    def _never_recorded(self, asked: Asked) -> Finding | None:
        """A series that nobody asked to record is missing for that reason."""
        query = compile_query(asked.query)
        names = query.names if isinstance(query, Query) else None
        unknown = sorted((names or frozenset()) - self._recorded.names)
        if not unknown:
            return None
        values: dict[str, str | int | float | None] = {"query": asked.query, "series": ", ".join(unknown)}
        return Finding(code="metrics.not-recorded", effect="warn", values=values)

    def _instead(self, found: Measured, asked: Asked, instances: Sequence[str], start: float, end: float) -> Measured:
        """Recorded scrapes for a Prometheus that is away, said so; where they have nothing, its own answer."""
        if found.readings or found.problem is None or found.problem.code not in AWAY:
            return found
        scrapes = self._of_scrapes(asked, instances, start, end)
        if not scrapes.readings:
            return found
        values: dict[str, str | int | float | None] = {
            "query": asked.query,
            "source": scrapes.source,
            "away": found.source,
            "error": found.problem.values.get("error"),
            "also": scrapes.problem.code if scrapes.problem else "",
        }
        problem = Finding(code="metrics.instead", effect="warn", values=values)
        return scrapes.model_copy(
            update={"problem": problem, "source": f"{scrapes.source} (instead of {found.source})"}
        )
