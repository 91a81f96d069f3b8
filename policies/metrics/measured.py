"""What a query gave over one window: readings in time order, or why there are none. Missing is never 0."""

from __future__ import annotations

from math import isfinite
from typing import Literal

from pydantic import field_validator, model_validator

from policies.finding import Finding
from policies.model import Model

Comparison = Literal["==", "!=", ">", ">=", "<", "<="]


class Reading(Model):
    """One value at one moment. `most` and `beyond` are for values that are known only in part.

    most: several series answered and differ; `value` is the least of them and `most` the greatest.
    beyond: the true value is somewhere above `value`, e.g. a quantile past the last bound of its histogram.
    Units: at is epoch seconds; value has the unit of its `Measured`.
    """

    at: float
    value: float
    most: float | None = None
    beyond: bool = False

    @field_validator("at", "value", "most")
    @classmethod
    def _finite(cls, value: float | None) -> float | None:
        if value is not None and not isfinite(value):
            message = f"a reading is a finite number, not {value}"
            raise ValueError(message)
        return value

    @property
    def exact(self) -> bool:
        """Whether the value is known, and not only where it lies."""
        return not self.beyond and (self.most is None or self.most == self.value)

    def holds(self, op: Comparison, number: float) -> bool | None:
        """Whether `value op number`; None when what is known does not decide it."""
        least, most = self.value, self.value if self.most is None else self.most
        match op:
            case ">" | ">=":
                # past a bound means above it: `> 30` holds for a value beyond 30
                low = least > number if op == ">" else least >= number
                if low or (self.beyond and least >= number):
                    return True
                high = most > number if op == ">" else most >= number
                return None if high or self.beyond else False
            case "<" | "<=":
                above = self.holds(">=" if op == "<" else ">", number)
                return None if above is None else not above
            case "==" | "!=":
                equal: bool | None = self._equal(number)
                return equal if op == "==" or equal is None else not equal

    def _equal(self, number: float) -> bool | None:
        if self.exact:
            return self.value == number
        if self.beyond:
            return False if number <= self.value else None
        return None if self.value <= number <= (self.most or self.value) else False


class Measured(Model):
    """One query over one window, and where it was asked.

    `problem` says what is wrong with the readings: without any it says why there are none, beside some it says what
    they do not cover (series that disagree, a source that was away and another that answered for it).
    Units: start and end are epoch seconds.
    """

    name: str  # of the fleet file's metric; the query itself where it was asked freely
    query: str
    unit: str
    source: str  # `scrape of URL on HOST` or `prometheus URL`
    start: float
    end: float
    readings: tuple[Reading, ...] = ()
    problem: Finding | None = None

    @model_validator(mode="after")
    def _told(self) -> Measured:
        if not self.readings and self.problem is None:
            message = f"`{self.name}` has no readings and no problem says why"
            raise ValueError(message)
        if any(a.at > b.at for a, b in zip(self.readings, self.readings[1:], strict=False)):
            message = f"the readings of `{self.name}` are not in time order"
            raise ValueError(message)
        return self

    @property
    def last(self) -> Reading | None:
        """The newest reading."""
        return self.readings[-1] if self.readings else None


def missing(name: str, *, query: str, unit: str, source: str, start: float, end: float) -> Measured:
    """No sample of what the query asks for in this window: no data, never 0."""
    values: dict[str, str | int | float | None] = {"query": query, "source": source, "start": start, "end": end}
    problem = Finding(code="metrics.missing", effect="warn", values=values)
    return Measured(name=name, query=query, unit=unit, source=source, start=start, end=end, problem=problem)
