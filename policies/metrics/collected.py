"""What the moments of a window gave: readings, and what is to be said of those that gave none."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite

from policies.finding import Finding
from policies.metrics.evaluate import Answer
from policies.metrics.measured import Measured, Reading
from policies.metrics.names import THROUGHPUT
from policies.metrics.samples import NO_VALUE

Values = dict[str, str | int | float | None]


@dataclass(frozen=True, slots=True)
class Asked:
    """A query, its name in the fleet file or itself, and the unit of what it gives."""

    name: str
    query: str
    unit: str


@dataclass(slots=True)
class Collected:
    """Readings of one query over one window, as they come. Units: start and end are epoch seconds."""

    asked: Asked
    source: str
    start: float
    end: float
    readings: list[Reading] = field(default_factory=list)
    missing: int = 0
    problem: Finding | None = None

    def finding(self, code: str, **values: str | float | None) -> Finding:
        """One that names the query and where it was asked."""
        told: Values = {"query": self.asked.query, "source": self.source, **values}
        return Finding(code=code, effect="warn", values=told)

    def nothing(self) -> Finding:
        """There is no series."""
        return self.finding("metrics.missing", start=self.start, end=self.end)

    def left_out(self, why: Finding) -> None:
        """A moment gave no reading."""
        self.missing += 1
        self.problem = self.problem or why

    def take(self, at: float, answer: Answer | Finding) -> None:
        """What a moment gave."""
        if isinstance(answer, Finding):
            self.left_out(answer)
        elif not answer:
            self.left_out(self.nothing())
        elif (reading := reading_of(at, answer)) is None:
            self.left_out(self.finding("metrics.no-number", at=at))
        else:
            self.readings.append(reading)

    def told(self, beside: Finding | None = None) -> Measured:
        """The whole. beside: what is said beside readings of which nothing worse is to be said."""
        problem = self.problem
        if self.readings:
            uneven = next((r for r in self.readings if r.most is not None), None)
            if uneven is not None:
                problem = self.finding("metrics.disagree", at=uneven.at, least=uneven.value, most=uneven.most)
            elif problem is not None:
                of = self.missing + len(self.readings)
                problem = self.finding("metrics.gaps", missing=self.missing, of=of, why=problem.code)
            else:
                problem = beside or self._last_value()
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

    def _last_value(self) -> Finding | None:
        """A throughput that was logged last need not be that of now."""
        if THROUGHPUT not in self.asked.query:
            return None
        return Finding(code="metrics.last-value", effect="note", values={"query": self.asked.query})


def reading_of(at: float, answer: Answer) -> Reading | None:
    """One reading of all the series of an answer, None where one of them is no number."""
    values = [point.value for point in answer if isfinite(point.value.number) and abs(point.value.number) < NO_VALUE]
    if not values or len(values) < len(answer):  # NaN is how an engine says that it does not know
        return None
    least, most = min(v.number for v in values), max(v.number for v in values)
    differ = least != most or len({v.beyond for v in values}) > 1
    return Reading(at=at, value=least, most=most if differ else None, beyond=any(v.beyond for v in values))
