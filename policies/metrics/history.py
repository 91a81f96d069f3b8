"""Recorded scrapes as series over time, with the labels and the gaps that Prometheus would give them.

The label `instance` is service@host. A series that a later answer of its instance no longer has ends there: it is no
data from then on, not its last value.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from policies.metrics.nodes import NAME, Selector
from policies.metrics.samples import Sample, Scrape

INSTANCE = "instance"
# Source: Prometheus' default --query.lookback-delta: an older sample is no answer for now
LOOKBACK_S = 300.0
Key = tuple[tuple[str, str], ...]


def ms(at_s: float) -> int:
    """Prometheus counts time in whole milliseconds."""
    return round(at_s * 1000)


@dataclass(slots=True)
class Series:
    """One series. values: None where it ended. Units: times are epoch milliseconds, rising."""

    labels: Mapping[str, str]
    times: list[int] = field(default_factory=list)
    values: list[float | None] = field(default_factory=list)

    def newest(self, at: int, lookback: int) -> float | None:
        """The value at a moment, None when there is none that is young enough."""
        found = bisect_right(self.times, at) - 1
        return self.values[found] if found >= 0 and self.times[found] >= at - lookback else None

    def between(self, start: int, end: int) -> list[tuple[int, float]]:
        """Its samples in a range, both ends included."""
        low, high = bisect_left(self.times, start), bisect_right(self.times, end)
        pairs = zip(self.times[low:high], self.values[low:high], strict=True)
        return [(time, value) for time, value in pairs if value is not None]


class History:
    """The scrapes of one instance or more."""

    def __init__(self, scrapes: Iterable[Scrape]) -> None:
        self.scrapes = sorted(scrapes, key=lambda scrape: scrape.at)
        self._all: list[Series] | None = None
        self._named: dict[str, list[Series]] = {}
        self._selected: dict[Selector, list[Series]] = {}

    def select(self, selector: Selector) -> list[Series]:
        """Every series that fits, whether it has a sample just now or not."""
        if selector not in self._selected:
            name = selector.name
            if name is None:
                self._all = self._series(None) if self._all is None else self._all
                among = self._all
            else:
                among = self._named.get(name) or self._named.setdefault(name, self._series(name))
            fitting = [s for s in among if all(matcher.matches(s.labels) for matcher in selector.matchers)]
            self._selected[selector] = fitting
        return self._selected[selector]

    def _series(self, name: str | None) -> list[Series]:
        found: dict[Key, Series] = {}
        alive: dict[str, dict[Key, Series]] = {}  # by instance: those that its last answer had
        for scrape in self.scrapes:
            at = ms(scrape.at)
            now: dict[Key, Series] = {}
            for sample in scrape.samples if name is None else scrape.named(name):
                labels = labels_of(sample, scrape.instance)
                key = tuple(sorted(labels.items()))
                series = found.setdefault(key, Series(labels))
                if sample.at is None:
                    now[key] = series
                _put(series, at if sample.at is None else ms(sample.at), sample.value)
            for key, series in alive.get(scrape.instance, {}).items():
                if key not in now:
                    _put(series, at, None)
            alive[scrape.instance] = now
        return list(found.values())


def _put(series: Series, at: int, value: float | None) -> None:
    """Add a sample; one that is not younger than the last is not taken, as in Prometheus."""
    if not series.times or at > series.times[-1]:
        series.times.append(at)
        series.values.append(value)


def labels_of(sample: Sample, instance: str) -> dict[str, str]:
    """The labels under which a sample of an instance is found, its name among them."""
    labels = {NAME: sample.name, **{k: v for k, v in sample.labels.items() if v}}
    if INSTANCE in labels:
        labels[f"exported_{INSTANCE}"] = labels.pop(INSTANCE)
    labels[INSTANCE] = instance
    return labels
