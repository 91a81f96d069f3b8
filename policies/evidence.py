"""Evidence: what a knob's value was seen to be worth.

A summary record is typed by a person: a ratio per load point without runs. Its class is `observed`, never more.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from policies.model import Model


class Point(Model):
    """One load point. `ratio` is candidate / baseline of the record's metric, e.g. 1.128 for +12.8 %."""

    concurrency: int = Field(ge=1)
    ratio: float = Field(gt=0, allow_inf_nan=False)
    n_a: int = Field(default=1, ge=1)
    n_b: int = Field(default=1, ge=1)


class Correctness(Model):
    """`differing` of `compared` answers differed between the arms."""

    compared: int = Field(ge=1)
    differing: int = Field(ge=0)

    @property
    def could_percent(self) -> float:
        """Upper 95 % bound in percent when none differed. Source: rule of three, 3/N."""
        return 300.0 / self.compared


class Summary(Model):
    """What a person types into an evidence file."""

    knob: str
    value: str
    baseline: str | None = None  # None: the variable was not set
    metric: str = "output_throughput"
    better: Literal["higher", "lower"] = "higher"
    points: tuple[Point, ...] = Field(min_length=1)
    no_worse_up_to: int | None = None  # "no regression seen at or below this concurrency", as the person says
    correctness: Correctness | None = None
    context: dict[str, str] = Field(default_factory=dict)  # gpu, build, model, ...
    measured_on: str | None = None  # ISO date
    note: str = ""


class Record(Model):
    """A stored record. `by` is who recorded it; `sha256` is of the file it came from."""

    id: str
    knob: str
    klass: Literal["observed"] = "observed"
    summary: Summary
    by: str
    at: float
    source: str
    sha256: str
