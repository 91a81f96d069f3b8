"""Metrics from memory: texts that were recorded before, and what hosts answer when they are looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from policies.finding import Finding
from policies.fleet import Fleet
from policies.metrics.measured import Measured
from policies.metrics.samples import Scrape, read_scrape
from policies.metrics.window import Asked, measure

Texts = Callable[[float], Mapping[str, str]]  # time -> what each instance that answers exports then


@dataclass
class Remembered:
    """Stands where `workers.metrics` stands; what it is asked to take now is what `texts` gives."""

    fleet: Fleet
    clock: Callable[[], float]
    texts: Texts
    kept: list[Scrape] = field(default_factory=list)

    def record(self, at: float) -> None:
        """Every instance that answers is scraped at that time."""
        for instance, text in self.texts(at).items():
            found = read_scrape(text, instance=instance, url=f"http://127.0.0.1/{instance}", at=at)
            assert isinstance(found, Scrape), found
            self.kept.append(found)

    def window(self, name_or_query: str, on: str | None = None, *, start: float, end: float) -> Measured:
        """As a query on recorded scrapes."""
        metric = self.fleet.metrics.get(name_or_query)
        asked = Asked(metric.name, metric.query, metric.unit) if metric else Asked(name_or_query, name_or_query, "")
        service = on or (metric.on if metric else "decode")
        return measure(asked, self.kept, instances=self.fleet.instances(service), start=start, end=end)

    def scrapes(self, instance: str, start: float, end: float) -> tuple[Scrape, ...]:
        """Those of one instance."""
        found = (s for s in self.kept if s.instance == instance and start <= s.at <= end)
        return tuple(sorted(found, key=lambda s: s.at))

    def take(self, instances: Sequence[str]) -> dict[str, Scrape | Finding]:
        """Now."""
        self.record(self.clock())
        return {s.instance: s for s in self.kept if s.at == self.clock() and s.instance in instances}
