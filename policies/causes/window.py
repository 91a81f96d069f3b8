"""What was measured over one time: the readings of every metric that statements name, and the state of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from policies.causes.statement import Metric, Statement, metrics_of
from policies.metrics.measured import Measured, Reading
from policies.states.state import State

FRESH_S = 120.0
"""A reading older than this before the end of the window says nothing of its end.

Source: two scrapes of a Prometheus with its default scrape_interval of one minute; engine gauges lag by up to 30 s.
"""


@dataclass(frozen=True, slots=True)
class Window:
    """`measured` by `key(metric)`. state: of the engine that is asked about, None where nobody looked.

    started_at: start of the newest process in it; readings before it are of another process.
    Units: epoch seconds.
    """

    start: float
    end: float
    measured: Mapping[str, Measured] = field(default_factory=dict)
    state: State | None = None
    started_at: float | None = None

    def of(self, metric: Metric) -> Measured | None:
        """What a metric gave; None when it was not asked."""
        return self.measured.get(key(metric))

    def within(self, measured: Measured) -> tuple[Reading, ...]:
        """Its readings that lie in this window."""
        return tuple(reading for reading in measured.readings if self.start <= reading.at <= self.end)

    def is_fresh(self, reading: Reading) -> bool:
        """Whether it still speaks of the window's end."""
        return self.end - reading.at <= FRESH_S


def key(metric: Metric) -> str:
    """The key of a metric in a window: the name as it is, a query as it is written in a statement."""
    return str(metric)


def asked_for(statements: Iterable[Statement | None]) -> tuple[Metric, ...]:
    """Every metric that must be measured to judge these statements, each once."""
    found = (metric for statement in statements if statement is not None for metric in metrics_of(statement))
    return tuple(dict.fromkeys(found))
