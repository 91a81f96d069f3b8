"""Whether the answers stayed right: how far that was looked at, as a level from 0 to 3, and what it leaves possible.

0 nothing was compared. 1 fixed prompts, greedy: none of N answers differs. 2 an evaluation of both arms: the interval
of the difference lies above minus its margin. 3 both, and answers end for the same reasons and are as long.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal

from pydantic import Field, model_validator

from policies.model import Model

Level = Literal[0, 1, 2, 3]
SAME_LENGTH = 0.02  # as for output tokens per request between the arms of an A/B
SAME_SHARE = 0.01  # of the answers that end for a reason
TWO_SIDED_95 = NormalDist().inv_cdf(0.975)


class Scores(Model):
    """An evaluation such as gsm8k on the same questions in both arms. `a` and `b` are the shares that were right.

    `only_a` and `only_b` count the questions that one arm alone got right; without them the arms are not paired and
    the interval is wider.
    """

    name: str = Field(min_length=1, max_length=80)
    n: int = Field(ge=1)
    a: float = Field(ge=0, le=1, allow_inf_nan=False)
    b: float = Field(ge=0, le=1, allow_inf_nan=False)
    only_a: int | None = Field(default=None, ge=0)
    only_b: int | None = Field(default=None, ge=0)
    seed: int | None = None
    margin: float = Field(default=0.01, gt=0, lt=1)

    @model_validator(mode="after")
    def _agree(self) -> Scores:
        if (self.only_a is None) != (self.only_b is None):
            raise ValueError("only_a and only_b belong together")
        if self.only_a is not None and self.only_b is not None:
            told = (self.only_b - self.only_a) / self.n
            if self.only_a + self.only_b > self.n or abs(told - (self.b - self.a)) > 0.5 / self.n + 5e-4:
                raise ValueError("only_a and only_b do not give the difference of a and b")
        return self

    @property
    def paired(self) -> bool:
        """Whether it is known which questions the arms answered differently."""
        return self.only_a is not None

    @property
    def interval(self) -> tuple[float, float]:
        """Two-sided 95 % interval of b - a, as a fraction.

        Source: Agresti and Min 2005 for pairs (half an answer in each cell), Agresti and Caffo 2000 otherwise.
        """
        z = TWO_SIDED_95
        if self.only_a is not None and self.only_b is not None:
            n, left, right = self.n + 2.0, self.only_a + 0.5, self.only_b + 0.5
            middle = (right - left) / n
            error = math.sqrt(max(0.0, left + right - (right - left) ** 2 / n)) / n
        else:
            n = self.n + 2.0
            a, b = ((share * self.n + 1) / n for share in (self.a, self.b))
            middle = b - a
            error = math.sqrt(a * (1 - a) / n + b * (1 - b) / n)
        return middle - z * error, middle + z * error

    @property
    def passes(self) -> bool:
        """Whether a loss of the margin is ruled out."""
        return self.interval[0] > -self.margin

    @property
    def lost(self) -> bool:
        """Whether a loss is shown."""
        return self.interval[1] < 0


class Endings(Model):
    """How answers ended, counted by reason, and how many tokens they have."""

    reasons_a: dict[str, int] = Field(min_length=1, max_length=20)
    reasons_b: dict[str, int] = Field(min_length=1, max_length=20)
    tokens_a: tuple[float, float, float]  # mean, median, p95
    tokens_b: tuple[float, float, float]

    @property
    def alike(self) -> bool:
        """Each reason has the same share within a point, each length is the same within 2 %."""
        totals = sum(self.reasons_a.values()), sum(self.reasons_b.values())
        if not all(totals) or not all(value > 0 for value in (*self.tokens_a, *self.tokens_b)):
            return False
        shares = (
            abs(self.reasons_a.get(reason, 0) / totals[0] - self.reasons_b.get(reason, 0) / totals[1])
            for reason in {*self.reasons_a, *self.reasons_b}
        )
        lengths = (abs(b / a - 1) for a, b in zip(self.tokens_a, self.tokens_b, strict=True))
        return max(shares) <= SAME_SHARE and max(lengths) <= SAME_LENGTH


class Correctness(Model):
    """What was compared. `differing` of `compared` answers to fixed prompts differed between the arms."""

    compared: int | None = Field(default=None, ge=1)
    differing: int | None = Field(default=None, ge=0)
    scores: Scores | None = None
    endings: Endings | None = None

    @property
    def could_percent(self) -> float | None:
        """Upper 95 % bound in percent when none differed. Source: rule of three, 3/N."""
        return None if self.compared is None or self.differing else min(100.0, 300.0 / self.compared)

    @property
    def same_answers(self) -> bool:
        """Level 1 by itself: answers were compared and none differs."""
        return self.compared is not None and self.differing == 0

    @property
    def level(self) -> Level:
        """The highest level that holds. A score may hold where answers differ: tiling changes the order of sums."""
        scored = self.scores is not None and self.scores.passes
        if scored and self.same_answers and self.endings is not None and self.endings.alike:
            return 3
        if scored:
            return 2
        return 1 if self.same_answers and not (self.scores is not None and self.scores.lost) else 0


def problem(told: Correctness) -> str | None:
    """Why what somebody told cannot be; None when it can. Not asked of what is recorded already."""
    if (told.compared is None) != (told.differing is None):
        return "`compared` and `differing` belong together"
    if told.compared is not None and told.differing is not None and told.differing > told.compared:
        return f"{told.differing} answers differ of {told.compared} compared, expected at most as many"
    if told.compared is None and told.scores is None:
        return "neither answers nor scores were compared, expected `compared` and `differing`, or `scores`"
    return None
