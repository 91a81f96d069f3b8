"""A record of evidence as a policy case tells it: what rules look at, and nothing of the runs behind it."""

from __future__ import annotations

from typing import get_args

from policies.abtest.judgement import Word
from policies.applicability import Holds
from policies.correctness import Correctness
from policies.evidence import Point, Record, Summary
from policies.fleet_checks.table import Table

KEYS = ("id", "value", "class", "holds", "metric", "age", "repeats", "correctness")
HOLDS: tuple[Holds, ...] = get_args(Holds)
CLASSES: tuple[Word, ...] = get_args(Word)


def read_holds(table: Table) -> Holds:
    """What the record is worth today: `valid` where the case says nothing."""
    return table.word("holds", HOLDS, "case.holds") or "valid"


def read_record(table: Table, knob: str, now: float, number: int) -> Record:
    """The record, `ab-NUMBER` where it has no id of its own.

    `age` is the time since it was measured and recorded, `repeats` the runs of an arm.
    """
    table.need("value", "value: 512")
    value = table.reader.text(table.at("value"), table.nodes["value"], raw=True) if "value" in table else ""
    repeats = table.whole("repeats", 1, 1000, 1)
    metric = table.text("metric") or "output_throughput"
    seen = table.table("correctness", ("compared", "differing"))
    correctness = (
        Correctness(compared=seen.whole("compared", 0, 10**9, 0), differing=seen.whole("differing", 0, 10**9, 0))
        if seen is not None
        else None
    )
    point = Point(concurrency=1, ratio=1.0, n_a=repeats, n_b=repeats)
    summary = Summary(knob=knob, value=value, metric=metric, points=(point,), correctness=correctness)
    return Record(
        id=table.text("id") or f"ab-{number}",
        knob=knob,
        klass=table.word("class", CLASSES, "case.class") or "observed",
        value=value,
        metric=metric,
        summary=summary,
        correctness=correctness,
        source="a policy case",
        by="U0",
        at=now - table.duration("age", 0.0, low_s=0.0),
    )
