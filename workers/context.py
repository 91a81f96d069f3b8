"""Today's context of a knob, asked in the same look that a plan is made from, and what records are worth in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from policies.applicability import Standing, standing
from policies.case import Case
from policies.context import Context, LoadRange
from policies.evidence import Record
from policies.facts import UnitFacts
from policies.fleet import Fleet, Knob
from policies.metrics.measured import Measured
from policies.metrics.samples import Scrape
from policies.today import running_query, scraped, today, variables, with_load
from workers.executors.answers import LogAsk
from workers.hosts import Hosts

LOG_LINES = 200  # an engine says in its log when it does not know a variable
MOST_STANDINGS = 8
DAY_S = 86_400.0
# recorded scrapes are read one by one: an hour of them takes about 0.1 s, a day some seconds
RECENT_S = 3_600.0


class Windows(Protocol):
    """Readings over a window: `workers.metrics`."""

    def window(self, name_or_query: str, on: str | None = None, *, start: float, end: float) -> Measured:
        """A query on a service. Units: epoch seconds."""


class Contexts:
    """Of the knobs of one fleet. `clock` gives epoch seconds."""

    def __init__(self, fleet: Fleet, hosts: Hosts, metrics: Callable[[], Windows], clock: Callable[[], float]) -> None:
        self._fleet = fleet
        self._hosts = hosts
        self._metrics = metrics
        self._clock = clock

    def look(self, knob: Knob, *, log: bool = True) -> dict[str, UnitFacts]:
        """One look at every instance that the knob or its restart orders touch.

        log: the end of each unit's log, too. Raises: HostUnreachable, HostAnswerLost.
        """
        fleet = self._fleet
        services = dict.fromkeys((*(s for order in knob.restarts for s in fleet.restarts[order]), *knob.on))
        instances = [i for service in services for i in fleet.instances(service)]
        lines = LogAsk(LOG_LINES) if log else None
        return self._hosts.observe(instances, variables(fleet, knob), log=lines, context=True).units

    def today(self, knob: Knob, units: Mapping[str, UnitFacts], load: LoadRange | None = None) -> Context:
        """What runs now. load: what was seen when a change was planned; None: what is seen now.

        Raises: StoreUnavailable.
        """
        scrapes = scraped(self._fleet, knob, units)
        found = today(self._fleet, knob, units, scrapes)
        return found.model_copy(update={"load": load if load is not None else self._load(knob, scrapes, found.load)})

    def _load(self, knob: Knob, scrapes: Mapping[str, Scrape], now: LoadRange | None) -> LoadRange | None:
        """The p95 of running requests, and those of this moment; these alone where too little was measured."""
        asked = running_query(self._fleet, knob, scrapes)
        if asked is None:
            return now
        service, query = asked
        server = self._fleet.prometheus_url is not None
        end = self._clock()
        found = self._metrics().window(query, service, start=end - (DAY_S if server else RECENT_S), end=end)
        return with_load(found.readings, now, "p95" if server else "recent")

    def of(
        self, knob: Knob, records: Iterable[Record], units: Mapping[str, UnitFacts] | None = None
    ) -> tuple[Standing, ...]:
        """What records are worth today. units: a look that was made already.

        Raises: HostUnreachable, HostAnswerLost, StoreUnavailable.
        """
        kept = list(records)
        if not kept:
            return ()
        now = self.today(knob, self.look(knob) if units is None else units)
        return tuple(standing(record, now, self._clock(), variable=knob.env) for record in kept)


def standings(case: Case, now: Context) -> dict[str, Standing]:
    """What every record of the case is worth today, by id. Rules that want newer ones than others say so themselves."""
    ages = [rule.evidence.max_age_s for rule in case.matching if rule.evidence is not None and rule.evidence.max_age_s]
    variable = case.knob.env if case.knob is not None else "the knob"
    found = (
        standing(record, now, case.now, max_age_s=max(ages, default=None), variable=variable)
        for record in case.evidence
    )
    return {one.record: one for one in found}


def told(case: Case, values: Iterable[str | None]) -> tuple[Standing, ...]:
    """The standings of the newest records of these values, for those who read the plan."""
    wanted = set(values) - {None}
    records = sorted((r for r in case.evidence if r.value in wanted), key=lambda r: r.at, reverse=True)
    return tuple(case.standings[r.id] for r in records[:MOST_STANDINGS] if r.id in case.standings)
