"""`the last change did it`: both ways measured, the old state twice, and nothing else changed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from policies.causes.claim import Claim
from policies.causes.last_change import Blamed, judge_change
from policies.causes.named_change import LAST, change_blamed
from policies.causes.parsing import read_statement
from policies.causes.scanning import Malformed
from policies.causes.statement import Metric
from policies.causes.window import Window
from tests.policies.builders import NOW
from tests.policies.cause_windows import window

SLOW = read_statement("ttft_s > 5")
assert not isinstance(SLOW, Malformed)
FAST, BAD = 0.3, 17.9
POINTS = (Metric("running_reqs"),)


def at(minutes: float, *values: float, load: float | None = 53.0) -> Window:
    """A minute with these first tokens, at that many requests."""
    return window({"ttft_s": values, "running_reqs": [] if load is None else [load]}, at=minutes * 60)


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
    found = judge_change(Blamed("C-142", SLOW, after, before, again, others, POINTS), NOW)
    assert f"{found.word} {found.reason.code.removeprefix('claim.change-')}" == expected


def test_all_three_measurements_are_cited() -> None:
    assert not isinstance(SLOW, Malformed)
    found = judge_change(Blamed("C-142", SLOW, at(-20, BAD), at(-30, FAST), at(-10, FAST), (), POINTS), NOW)
    assert [(c.value, (c.time - NOW) / 60) for c in (*found.citations, *found.baseline)] == [
        (BAD, -20),
        (FAST, -30),
        (FAST, -10),
    ]


@pytest.mark.parametrize(
    ("loads", "points", "code"),
    [
        ((53.0, 53.0, 53.0), POINTS, "holds"),
        ((30.0, 53.0, 60.0), POINTS, "holds"),
        ((1.0, 3.0, 2.0), POINTS, "holds"),
        ((3.0, 53.0, 3.0), POINTS, "other-load"),
        ((53.0, 53.0, 0.0), POINTS, "other-load"),
        ((53.0, 53.0, None), POINTS, "load-unknown"),
        ((53.0, 53.0, 53.0), (), "load-unknown"),
        ((53.0, 53.0, 53.0), (Metric("ttft_s"),), "load-unknown"),
    ],
)
def test_only_measurements_at_the_same_load_establish_it(
    loads: tuple[float, float, float | None], points: Sequence[Metric], code: str
) -> None:
    assert not isinstance(SLOW, Malformed)
    before, after, again = (
        at(minutes, value, load=load)
        for minutes, value, load in zip((-30, -20, -10), (FAST, BAD, FAST), loads, strict=True)
    )
    found = judge_change(Blamed("C-142", SLOW, after, before, again, (), points), NOW)
    assert found.reason.code == f"claim.change-{code}"
    assert found.word == ("verified" if code == "holds" else "consistent")


def test_a_cause_of_the_catalogue_that_holds_as_well_keeps_it_open() -> None:
    assert not isinstance(SLOW, Malformed)
    loaded = read_statement("running_reqs > 50")
    assert not isinstance(loaded, Malformed)
    given = Blamed(
        "C-142", SLOW, at(-20, BAD), at(-30, FAST), at(-10, FAST), (), POINTS, (Claim(loaded, name="crowded"),)
    )
    found = judge_change(given, NOW)
    assert (found.word, found.reason.code) == ("consistent", "claim.change-rivals-hold")
    assert [(rival.name, rival.word) for rival in found.rivals] == [("crowded", "holds")]


def test_everything_that_is_missing_is_named() -> None:
    assert not isinstance(SLOW, Malformed)
    found = judge_change(Blamed("C-142", SLOW, at(-20, BAD)), NOW)
    assert found.word == "consistent"
    assert [finding.code.removeprefix("claim.change-") for finding in (found.reason, *found.unknown)] == [
        "not-measured-before",
        "others-not-known",
        "old-state-not-measured",
    ]


@pytest.mark.parametrize(
    ("words", "blamed"),
    [
        ("C-12 broke it", "C-12"),
        ("it is slow since c-12", "C-12"),
        ("The last change did it", LAST),
        ("the latest deploy, surely", LAST),
        ("it was not C-12", None),
        ("the last change didn\N{RIGHT SINGLE QUOTATION MARK}t do it", None),
        ("C-12 fixed it", None),
        ("was it C-12?", None),
        ("C-12 or C-13", None),
        ("multi-round hang", None),
        ("our last hope", None),
    ],
)
def test_only_words_that_blame_one_change_name_it(words: str, blamed: str | None) -> None:
    assert change_blamed(words) == blamed
