"""One query over one window of recorded scrapes, as readings: one at each moment at which every instance was scraped.

A moment at which an instance was not scraped, or has not the series that another one of its service has, gives no
reading: a sum over half of the replicas is another number. What is left out is told beside the readings.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence

from policies.finding import Finding
from policies.metrics.collected import Asked, Collected
from policies.metrics.evaluate import evaluate
from policies.metrics.history import LOOKBACK_S, History
from policies.metrics.measured import Measured
from policies.metrics.promql import Query, compile_query
from policies.metrics.samples import Scrape

__all__ = ("FRESH_S", "MOST_READINGS", "Asked", "measure", "reach_s")

# Source: FACTS-serving 3.1, a gauge may be up to 30 s old after an engine went idle; two ticks of 15 s are as long
FRESH_S = 30.0
TOGETHER_S = 2.0  # scrapes of several instances within it are one moment
MOST_READINGS = 500  # of a longer window evenly spread moments are answered
MOST_SOURCES = 3


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
    found = sorted((s for s in scrapes if s.instance in instances), key=_at)
    window = Collected(asked, _source(s for s in found if s.at <= end), start, end)
    query = compile_query(asked.query)
    if isinstance(query, Finding):
        window.problem = query
        return window.told()
    moments = _moments([s for s in found if start <= s.at <= end])
    if not moments:
        before = [s.at for s in found if s.at < start]
        stale = window.finding("metrics.stale", last=before[-1], age_s=start - before[-1]) if before else None
        window.problem = stale or window.nothing()
    history = History(found)
    for at in moments:
        newest = {
            s.instance: s for s in found[bisect_left(found, at - fresh_s, key=_at) : bisect_right(found, at, key=_at)]
        }
        lacking = _lacking(window, query, newest, instances, at)
        if lacking is not None:
            window.left_out(lacking)
        else:
            window.take(at, evaluate(query, history, at))
    return window.told()


def reach_s(text: str) -> float:
    """How far before its window a query looks. Units: seconds."""
    query = compile_query(text)
    return LOOKBACK_S + (query.range_s if isinstance(query, Query) else 0.0)


def _at(scrape: Scrape) -> float:
    return scrape.at


def _source(scrapes: Iterable[Scrape]) -> str:
    """Where the samples come from, each place once."""
    found = list(dict.fromkeys(scrape.source for scrape in scrapes))
    more = [f"{len(found) - MOST_SOURCES} more"] if len(found) > MOST_SOURCES else []
    return ", ".join([*found[:MOST_SOURCES], *more]) or "recorded scrapes"


def _moments(inside: Sequence[Scrape]) -> list[float]:
    """When to look: at each scrape of the window, at the last of those that belong together."""
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


def _lacking(
    window: Collected, query: Query, newest: Mapping[str, Scrape], instances: Sequence[str], at: float
) -> Finding | None:
    """The instance without which an answer for this moment would be one of a part only."""
    for instance in instances:
        if instance not in newest:
            return window.finding("metrics.not-scraped", instance=instance, at=at)
    for name in query.names or ():
        having = {scrape.instance for scrape in newest.values() if scrape.named(name)}
        services = {instance.partition("@")[0] for instance in having}
        for instance in instances:
            if instance not in having and instance.partition("@")[0] in services:
                return window.finding("metrics.partial", instance=instance, series=name, at=at)
    return None
