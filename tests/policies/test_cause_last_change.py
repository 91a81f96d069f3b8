"""`the last change did it`: both ways measured, the old state twice, and nothing else changed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from policies.causes.last_change import Blamed, judge_change
from policies.causes.parsing import read_statement
from policies.causes.scanning import Malformed
from policies.causes.window import Window
from tests.policies.builders import NOW
from tests.policies.cause_windows import window

SLOW = read_statement("ttft_s > 5")
assert not isinstance(SLOW, Malformed)
FAST, BAD = 0.3, 17.9


def at(minutes: float, *values: float) -> Window:
    return window({"ttft_s": values}, at=minutes * 60)


@pytest.mark.parametrize(
    ("before", "after", "again", "others", "expected"),
    [
        (at(-30, FAST), at(-20, BAD), at(-10, FAST), (), "verified holds"),
        (at(-30, FAST), at(-20, BAD), None, (), "consistent old-state-not-measured"),
        (at(-30, FAST), at(-20, BAD), at(-10), (), "consistent old-state-not-measured"),
        (at(-30, FAST), at(-20, BAD), at(-10, FAST, BAD), (), "consistent old-state-not-measured"),
        (at(-30, FAST), at(-20, BAD), at(-25, FAST), (), "consistent old-state-not-measured"),
        (at(-30, FAST), at(-20, BAD), at(-10, BAD), (), "refuted old-state-too"),
        (at(-30, FAST), at(-20, FAST), at(-10, FAST), (), "refuted no-effect"),
        (at(-30, BAD), at(-20, BAD), at(-10, FAST), (), "refuted was-there-before"),
        (None, at(-20, BAD), at(-10, FAST), (), "consistent not-measured-before"),
        (at(-30), at(-20, BAD), at(-10, FAST), (), "consistent not-measured-before"),
        (at(-20.5, FAST), at(-20, BAD), at(-10, FAST), (), "consistent not-measured-before"),
        (at(-30, FAST), at(-20), at(-10, FAST), (), "unverified not-known"),
        (at(-30, FAST), at(-20, BAD), at(-10, FAST), ("C-7",), "consistent not-alone"),
        (at(-30, FAST), at(-20, BAD), at(-10, FAST), None, "consistent others-not-known"),
        (at(-30, FAST), at(-20, BAD), at(1, FAST), (), "unverified not-over"),
    ],
)
def test_a_change_is_established_only_when_going_back_takes_the_effect_away(
    before: Window | None, after: Window, again: Window | None, others: Sequence[str] | None, expected: str
) -> None:
    assert not isinstance(SLOW, Malformed)
    found = judge_change(Blamed("C-142", SLOW, after, before, again, others), NOW)
    assert f"{found.word} {found.reason.code.removeprefix('claim.change-')}" == expected


def test_all_three_measurements_are_cited() -> None:
    assert not isinstance(SLOW, Malformed)
    found = judge_change(Blamed("C-142", SLOW, at(-20, BAD), at(-30, FAST), at(-10, FAST), ()), NOW)
    assert [(c.value, (c.time - NOW) / 60) for c in (*found.citations, *found.baseline)] == [
        (BAD, -20),
        (FAST, -30),
        (FAST, -10),
    ]
