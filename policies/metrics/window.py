"""One query over one window of recorded scrapes, as readings: one at each moment at which every instance was scraped.

A moment at which an instance was not scraped, or has not the series that another one of its service has, gives no
reading: a sum over half of the replicas is another number. What is left out is told beside the readings.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import isfinite

from policies.finding import Finding
from policies.metrics.evaluate import Answer, evaluate
from policies.metrics.history import LOOKBACK_S, History
from policies.metrics.measured import Measured, Reading
from policies.metrics.promql import Query, compile_query
from policies.metrics.samples import NO_VALUE, Scrape

# Source: FACTS-serving 3.1, a gauge may be up to 30 s old after an engine went idle; two ticks of 15 s are as long
FRESH_S = 30.0
TOGETHER_S = 2.0  # scrapes of several instances within it are one moment
MOST_READINGS = 500  # of a longer window evenly spread moments are answered
MOST_SOURCES = 3
Values = dict[str, str | int | float | None]


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, its name in the fleet file or itself, and the unit of what it gives."""

    name: str
    query: str
    unit: str


def measure(
    asked: Asked,
    scrapes: Iterable[Scrape],
    *,
    instances: Sequence[str],
    start: float,
    end: float,
    fresh_s: float = FRESH_S,
) -> Measured:
    """The readings of a query on recorded scrapes of these instances (service@host).

    `scrapes` should reach back before `start` as far as `reach_s` says. Units: start and end are epoch seconds.
    """
    window = _Window(asked, sorted((s for s in scrapes if s.instance in instances), key=_at), start, end)
    query = compile_query(asked.query)
    if isinstance(query, Finding):
        return window.told(query)
    moments = window.moments()
    if not moments:
        return window.told(window.nothing())
    history = History(window.scrapes)
    for at in moments:
        lacking = window.lacking(query, instances, at, fresh_s)
        if lacking is not None:
            window.left_out(lacking)
        else:
            window.take(at, evaluate(query, history, at))
    return window.told(window.problem)


def reach_s(text: str) -> float:
    """How far before its window a query looks. Units: seconds."""
    query = compile_query(text)
    return LOOKBACK_S + (query.range_s if isinstance(query, Query) else 0.0)


def reading_of(at: float, answer: Answer) -> Reading | None:
    """One reading of all the series of an answer, None where none of them is a number."""
    values = [point.value for point in answer if isfinite(point.value.number) and abs(point.value.number) < NO_VALUE]
    if not values or len(values) < len(answer):  # NaN is how an engine says that it does not know
        return None
    least, most = min(v.number for v in values), max(v.number for v in values)
    differ = least != most or len({v.beyond for v in values}) > 1
    return Reading(at=at, value=least, most=most if differ else None, beyond=any(v.beyond for v in values))


def _at(scrape: Scrape) -> float:
    return scrape.at


@dataclass(slots=True)
class _Window:
    asked: Asked
    scrapes: list[Scrape]
    start: float
    end: float
    readings: list[Reading] = field(default_factory=list)
    missing: int = 0
    problem: Finding | None = None

    @property
    def source(self) -> str:
        """Where the samples come from, each place once."""
        found = list(dict.fromkeys(s.source for s in self.scrapes if s.at <= self.end))
        more = [f"{len(found) - MOST_SOURCES} more"] if len(found) > MOST_SOURCES else []
        return ", ".join([*found[:MOST_SOURCES], *more]) or "recorded scrapes"

    def moments(self) -> list[float]:
        """When to look: at each scrape of the window, at the last of those that belong together."""
        inside = [s for s in self.scrapes if self.start <= s.at <= self.end]
        found: list[float] = []
        for place, scrape in enumerate(inside, start=1):
            later = inside[place] if place < len(inside) else None
            together = later is not None and later.at - scrape.at < TOGETHER_S and later.instance != scrape.instance
            if not together and (not found or scrape.at > found[-1]):
                found.append(scrape.at)
        if len(found) <= MOST_READINGS:
            return found
        step = (len(found) - 1) / (MOST_READINGS - 1)
        return [found[round(i * step)] for i in range(MOST_READINGS)]

    def nothing(self) -> Finding:
        """Why there is no moment at all."""
        before = [s.at for s in self.scrapes if s.at < self.start]
        if before:
            return self._finding("metrics.stale", last=before[-1], age_s=self.start - before[-1])
        return self._missing()

    def lacking(self, query: Query, instances: Sequence[str], at: float, fresh_s: float) -> Finding | None:
        """The instance without which an answer for this moment would be one of a part only."""
        first = bisect_left(self.scrapes, at - fresh_s, key=_at)
        newest = {s.instance: s for s in self.scrapes[first : bisect_right(self.scrapes, at, key=_at)]}
        for instance in instances:
            if instance not in newest:
                return self._finding("metrics.not-scraped", instance=instance, at=at)
        for name in query.names or ():
            having = {s.instance for s in newest.values() if s.named(name)}
            services = {instance.partition("@")[0] for instance in having}
            for instance in instances:
                if instance not in having and instance.partition("@")[0] in services:
                    return self._finding("metrics.partial", instance=instance, series=name, at=at)
        return None

    def left_out(self, why: Finding) -> None:
        """This moment gave no reading."""
        self.missing += 1
        self.problem = self.problem or why

    def take(self, at: float, answer: Answer | Finding) -> None:
        """What a moment gave."""
        if isinstance(answer, Finding):
            self.left_out(answer)
        elif not answer:
            self.left_out(self._missing())
        elif (reading := reading_of(at, answer)) is None:
            self.left_out(self._finding("metrics.no-number", at=at))
        else:
            self.readings.append(reading)

    def told(self, problem: Finding | None) -> Measured:
        """The whole."""
        if self.readings and problem is not None:
            code = problem.code
            problem = self._finding(
                "metrics.gaps", missing=self.missing, of=self.missing + len(self.readings), why=code
            )
        uneven = next((r for r in self.readings if r.most is not None), None)
        if uneven is not None:
            problem = self._finding("metrics.disagree", at=uneven.at, least=uneven.value, most=uneven.most)
        return Measured(
            name=self.asked.name,
            query=self.asked.query,
            unit=self.asked.unit,
            source=self.source,
            start=self.start,
            end=self.end,
            readings=tuple(self.readings),
            problem=problem,
        )

    def _missing(self) -> Finding:
        return self._finding("metrics.missing", start=self.start, end=self.end)

    def _finding(self, code: str, **values: str | float | None) -> Finding:
        told: Values = {"query": self.asked.query, "source": self.source, **values}
        return Finding(code=code, effect="warn", values=told)
