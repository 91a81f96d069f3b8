"""Which series are recorded: those that readings of engines need, and those that the fleet file asks for.

A metrics text has thousands of series, most of them buckets; kept every 15 s for a day they would fill the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from policies.causes.parsing import read_statement
from policies.causes.scanning import Malformed
from policies.causes.statement import metrics_of
from policies.fleet import Fleet
from policies.metrics.history import labels_of
from policies.metrics.names import RECORDED
from policies.metrics.nodes import Selector, walk
from policies.metrics.promql import Query, compile_query
from policies.metrics.samples import Sample, Scrape

# of one scrape, so that no host can fill the store: several times what an engine of eight ranks has of them
MOST_SERIES = 4000


@dataclass(frozen=True, slots=True)
class Recorded:
    """What is kept of a scrape. selectors: those of the fleet's queries that name no series."""

    names: frozenset[str]
    selectors: tuple[Selector, ...] = ()

    def keeps(self, sample: Sample, instance: str) -> bool:
        """Whether somebody may ask for it."""
        if sample.name in self.names:
            return True
        labels = labels_of(sample, instance) if self.selectors else {}
        return any(all(matcher.matches(labels) for matcher in selector.matchers) for selector in self.selectors)

    def of(self, scrape: Scrape) -> Scrape:
        """The scrape without the rest."""
        kept = tuple(sample for sample in scrape.samples if self.keeps(sample, scrape.instance))
        return replace(scrape, samples=kept[:MOST_SERIES])


def recorded(fleet: Fleet) -> Recorded:
    """What has to be recorded for a fleet: its metrics, its causes, and what states are read from."""
    names: set[str] = set(RECORDED)
    selectors: list[Selector] = []
    for text in _queries(fleet):
        query = compile_query(text)
        if isinstance(query, Query):
            found = [node for node in walk(query.root) if isinstance(node, Selector)]
            names |= {node.name for node in found if node.name is not None}
            selectors += [node for node in found if node.name is None]
    return Recorded(frozenset(names), tuple(dict.fromkeys(selectors)))


def _queries(fleet: Fleet) -> Iterator[str]:
    yield from (metric.query for metric in fleet.metrics.values())
    texts = [text for cause in fleet.causes.values() for text in (cause.needs, cause.refuted_by or "")]
    for text in (*texts, *(knob.if_guilty or "" for knob in fleet.knobs.values())):
        statement = read_statement(text) if text.strip() else None
        if statement is not None and not isinstance(statement, Malformed):
            yield from (metric.text for metric in metrics_of(statement) if metric.free)
