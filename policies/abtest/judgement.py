"""What an A/B was judged to show, in a form that a record can carry."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from policies.bench.metrics import Better, Family
from policies.bench.run import Load
from policies.finding import Finding
from policies.model import Model

Word = Literal[
    "improves",
    "no_worse",
    "trade_off",
    "regresses",
    "inconclusive",
    "observed",
    "weak",
    "stale",
    "outside",
    "invalid",
]


class Margins(Model):
    """How much worse still counts as no worse, and how much better is worth having. Fractions, set beforehand."""

    throughput: float = Field(default=0.02, gt=0, lt=1)
    typical_latency: float = Field(default=0.05, gt=0, lt=1)  # mean and median
    tail_latency: float = Field(default=0.10, gt=0, lt=1)  # p90 and above
    useful: float = Field(default=0.01, ge=0, lt=1)

    def of(self, family: Family) -> float:
        """The margin of a kind of metric."""
        return {
            "throughput": self.throughput,
            "typical latency": self.typical_latency,
            "tail latency": self.tail_latency,
        }[family]


class PointJudgement(Model):
    """One load. `ratio` is B / A of the metric; None where too few runs or a broken comparison allow no interval.

    `a` and `b` are the geometric means of the arms in the metric's unit, `runs_a` and `runs_b` the value of each run
    that was counted, in run order, `left_out_a` and `left_out_b` that of a first run that the rule left out. `bound`
    is the one-sided 95 % bound of the ratio on its worse side. `p_improves` is after Holm.
    """

    load: Load
    n_a: int
    n_b: int
    runs_a: tuple[float, ...] = ()
    runs_b: tuple[float, ...] = ()
    left_out_a: float | None = None
    left_out_b: float | None = None
    a: float
    b: float
    ratio: float
    ci_low: float | None = None
    ci_high: float | None = None
    bound: float | None = None
    p_improves: float | None = None
    klass: Word


class SourceFile(Model):
    """A file that runs came from; beside the arms, what was typed and what else a record stands on."""

    file: str
    sha256: str
    arm: Literal["A", "B", "typed", "scrapes", "correctness"]


class Judgement(Model):
    """The answer. Findings of effect `refuse` make it invalid, `warn` allows `weak` at most, `note` is only told.

    `today` is the highest concurrency that was judged; None: every load was.
    """

    verdict: Word
    metric: str
    unit: str
    better: Better
    interleaved: bool
    margins: Margins
    today: int | None = None
    points: tuple[PointJudgement, ...]
    problems: tuple[Finding, ...] = ()
    files: tuple[SourceFile, ...] = ()

    @property
    def good(self) -> bool:
        """Whether it shows that B may take A's place."""
        return self.verdict in {"improves", "no_worse"}
