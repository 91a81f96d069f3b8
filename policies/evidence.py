"""Evidence: what a knob's value was seen to be worth.

A record made from result files carries their Judgement. A summary is typed by a person: a ratio per load point without
runs. Its class is `observed`, never more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_validator

from policies.abtest.judgement import Judgement, SourceFile, Word
from policies.context import Context, LoadRange, told
from policies.correctness import Correctness
from policies.finding import Finding
from policies.model import Model

__all__ = ["Context", "Correctness", "Draft", "Effect", "Point", "Record", "Summary", "Worth", "remarks", "worth"]

LEAST_FOR_ORDER = 3  # loads, of which one lies between two others


class Point(Model):
    """One load point. `ratio` is candidate / baseline of the record's metric, e.g. 1.128 for +12.8 %."""

    concurrency: int = Field(ge=1)
    ratio: float = Field(gt=0, allow_inf_nan=False)
    n_a: int = Field(default=1, ge=1)
    n_b: int = Field(default=1, ge=1)


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


@dataclass(frozen=True, slots=True)
class Effect:
    """What was seen at one load. `ci` is the two-sided 95 % interval of the ratio, None where there is none."""

    load: str
    concurrency: int | None
    ratio: float
    n_a: int
    n_b: int
    ci: tuple[float, float] | None
    klass: Word


class Worth(NamedTuple):
    """What a value costs or brings at one load: `ratio` of the metric, `n` runs of the smaller arm, interval if any."""

    load: str
    ratio: float
    n: int
    ci: tuple[float, float] | None


class Draft(Model):
    """A record before somebody recorded it. `baseline` None: the variable was not set. Files are told by their sha256.

    `judgement` is of runs, `summary` is what a person typed; a record has one of them. Negative results are kept alike.
    """

    knob: str
    klass: Word = "observed"
    value: str
    baseline: str | None = None
    metric: str = "output_throughput"
    better: Literal["higher", "lower"] = "higher"
    judgement: Judgement | None = None
    summary: Summary | None = None
    context: Context = Context()
    correctness: Correctness | None = None
    measured_on: str | None = None  # ISO date; None: when it was recorded
    source: str
    files: tuple[SourceFile, ...] = ()
    note: str = ""

    def recorded(self, record_id: str, by: str, at: float) -> Record:
        """The record of it. by: who recorded it, a Slack user id. at: epoch seconds."""
        return Record(id=record_id, by=by, at=at, **{name: getattr(self, name) for name in Draft.model_fields})

    @property
    def points(self) -> tuple[Effect, ...]:
        """What was seen, in the order in which it was told."""
        if self.judgement is not None:
            return tuple(
                Effect(
                    load=p.load.label,
                    concurrency=p.load.concurrency,
                    ratio=p.ratio,
                    n_a=p.n_a,
                    n_b=p.n_b,
                    ci=(p.ci_low, p.ci_high) if p.ci_low is not None and p.ci_high is not None else None,
                    klass=p.klass,
                )
                for p in self.judgement.points
            )
        points = self.summary.points if self.summary is not None else ()
        return tuple(
            Effect(f"C{p.concurrency}", p.concurrency, p.ratio, p.n_a, p.n_b, None, "observed") for p in points
        )

    @property
    def repeats(self) -> int:
        """Runs of the smallest arm at the load that has fewest; 0 where no load was compared."""
        return min((min(p.n_a, p.n_b) for p in self.points), default=0)


class Record(Draft):
    """A stored record. `by` is who recorded it, when is `at` in epoch seconds."""

    id: str
    by: str
    at: float

    @model_validator(mode="before")
    @classmethod
    def _of_before(cls, data: Any) -> Any:
        """Entries of before there were judgements hold a summary and the sha256 of its file, and nothing else."""
        if not isinstance(data, Mapping) or "value" in data or data.get("summary") is None:
            return data
        summary = Summary.model_validate(data["summary"])
        rest = {name: value for name, value in data.items() if name != "sha256"}
        typed = SourceFile(file=str(data.get("source", "")), sha256=str(data.get("sha256", "")), arm="typed")
        return {**of_summary(summary), "files": (typed,), **rest}

    @property
    def measured_at(self) -> float:
        """When it was measured, as far as that is told, in epoch seconds; never after it was recorded."""
        try:
            day = datetime.fromisoformat(self.measured_on or "")
        except ValueError:
            return self.at
        return min(self.at, (day if day.tzinfo is not None else day.replace(tzinfo=UTC)).timestamp())


def of_summary(summary: Summary) -> dict[str, Any]:
    """The fields of a draft that a typed summary tells."""
    points = [point.concurrency for point in summary.points]
    low = 1 if summary.no_worse_up_to is not None else min(points)
    load = LoadRange(low=low, high=max([*points, summary.no_worse_up_to or 0]))
    return {
        "knob": summary.knob,
        "value": summary.value,
        "baseline": summary.baseline,
        "metric": summary.metric,
        "better": summary.better,
        "summary": summary,
        "correctness": summary.correctness,
        "measured_on": summary.measured_on,
        "context": told(summary.context, strict=False).model_copy(update={"load": load}),
        "note": summary.note,
    }


def worth(record: Draft) -> tuple[Worth, ...]:
    """What the record's value costs or brings against its baseline at each load, in the record's order."""
    return tuple(Worth(p.load, p.ratio, min(p.n_a, p.n_b), p.ci) for p in record.points)


def remarks(record: Draft) -> tuple[Finding, ...]:
    """What the numbers themselves ask for: a load without interval that is worse than both its neighbours."""
    known = sorted((p for p in record.points if p.concurrency is not None), key=lambda p: p.concurrency or 0)
    if len(known) < LEAST_FOR_ORDER:
        return ()
    sign = 1 if record.better == "higher" else -1
    found: list[Finding] = []
    for before, point, after in zip(known, known[1:], known[2:], strict=False):
        if point.ci is None and sign * point.ratio < min(sign * before.ratio, sign * after.ratio):
            values: dict[str, str | int | float | None] = {"point": point.load, "before": before.load}
            values["after"] = after.load
            found.append(Finding(code="evidence.not-monotone", effect="note", values=values))
    return tuple(found)
