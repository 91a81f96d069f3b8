"""Windows to judge causes on: what the fleet's metrics said over some time, and what its engines were doing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from policies.causes.statement import Metric
from policies.causes.window import Window, key
from policies.citation import Citation, cited
from policies.finding import Finding
from policies.fleet import Fleet
from policies.metrics.measured import Measured
from policies.metrics.samples import Scrape
from policies.statement import Times
from policies.states.group import together
from policies.states.state import State
from policies.states.work import is_engine
from workers.states import States

LOOKS = 3  # a trend needs three readings
LOOK_PAUSE_S = 0.6  # so that the first and the last are far enough apart to tell idle
BASELINE_S = 600.0
BASELINE_GAP_S = 1.0
STATE_REACH_S = 120.0  # an engine that was scraped longer ago is not told of
MOST_LOAD = 6
COUNTS = "requests"  # unit of the metrics that are told as load


class Metrics(Protocol):
    """Where measurements come from: `workers.metrics`."""

    def window(self, name_or_query: str, on: str | None = None, *, start: float, end: float) -> Measured:
        """A named metric of the fleet, or a query, over one window."""

    def scrapes(self, instance: str, start: float, end: float) -> tuple[Scrape, ...]:
        """Recorded scrapes of an instance (service@host), oldest first."""

    def take(self, instances: Sequence[str]) -> dict[str, Scrape | Finding]:
        """Scrape these now and record it: each scrape, or why there is none."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """Builds windows. `clock` gives epoch seconds."""

    fleet: Fleet
    metrics: Metrics
    clock: Callable[[], float]
    sleep: Callable[[float], object] = time.sleep

    def look(self, looks: int = LOOKS) -> Times:
        """Scrape everything some times now; the window that these looks make.

        By the clocks of the hosts, whose scrapes they are.
        """
        instances = self.instances(self.fleet.services)
        begun = self.clock()
        times: list[float] = []
        for number in range(looks):
            if number:
                self.sleep(LOOK_PAUSE_S)
            times += [s.at for s in self.metrics.take(instances).values() if isinstance(s, Scrape)]
        if not times:
            return Times(start=begun, end=self.clock())
        return Times(start=min(times), end=max(times))

    def before(self, effect: Times) -> Times:
        """The baseline of an effect that is there now: the ten minutes before it."""
        end = effect.start - BASELINE_GAP_S
        return Times(start=end - BASELINE_S, end=end)

    def window(self, times: Times, needed: Iterable[Metric], services: Iterable[str]) -> Window:
        """What was measured over some time. services: those whose engines are asked for their state."""
        asked = dict.fromkeys((*needed, *self._load_metrics()))
        measured = {key(one): self.metrics.window(one.text, start=times.start, end=times.end) for one in asked}
        state = self.state(services, times.end)
        return Window(times.start, times.end, measured, state, state.started_at if state is not None else None)

    def load(self, window: Window) -> tuple[Citation, ...]:
        """The newest readings of the metrics that count requests."""
        found = [window.of(metric) for metric in self._load_metrics()]
        return tuple(cited(one, one.last) for one in found if one is not None and one.last is not None)

    def state(self, services: Iterable[str], at: float) -> State | None:
        """What the engines of these services were doing at that time; None where none of them is an engine."""
        states: dict[str, State] = {}
        for service in services:
            for instance in self.fleet.instances(service):
                known = self.metrics.scrapes(instance, at - STATE_REACH_S, at + BASELINE_GAP_S)
                if known and is_engine(known[-1]):
                    states[instance] = States(self.fleet, self.metrics).at(known[-1])
        return together(states)

    def states(self, services: Iterable[str], at: float) -> dict[str, State]:
        """The same for each service by itself."""
        found = {service: self.state([service], at) for service in services}
        return {service: state for service, state in found.items() if state is not None}

    def instances(self, services: Iterable[str]) -> list[str]:
        """Instances whose services have metrics."""
        return [
            i for service in services if self.fleet.services[service].metrics for i in self.fleet.instances(service)
        ]

    def points(self) -> list[Metric]:
        """The metrics by which two times are at the same load: those that are told as load."""
        return self._load_metrics()

    def _load_metrics(self) -> list[Metric]:
        return [Metric(name) for name, metric in self.fleet.metrics.items() if metric.unit == COUNTS][:MOST_LOAD]
