"""Whether a statement holds: on every reading of a window, or not known and why."""

from __future__ import annotations

import pytest

from policies.causes.parsing import read_statement
from policies.causes.scanning import Malformed
from policies.causes.statement import Statement, StateWord
from policies.causes.trend import direction
from policies.causes.truth import citations_of, truth_of
from policies.causes.window import Window
from policies.metrics.measured import Reading
from tests.policies.builders import NOW
from tests.policies.cause_windows import measured, state, window


def read(text: str) -> Statement:
    found = read_statement(text)
    assert not isinstance(found, Malformed), found
    return found


def said(text: str, given: Window) -> str:
    """The truth, and the codes of why it is not known."""
    found = truth_of(read(text), given)
    return " ".join([found.word, *(f.code for f in found.why)])


BEYOND = Reading(at=0, value=30, beyond=True)
APART = Reading(at=0, value=1, most=3)


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("q > 0", [1, 2, 3], "holds"),
        ("q > 0", [0, 0], "fails"),
        ("q > 0", [0, 1, 1], "unknown claim.mixed"),
        ("q == 0", [0, 1, 1], "unknown claim.mixed"),
        ("q > 0", [], "unknown metrics.missing"),
        ("not q > 0", [], "unknown metrics.missing"),
        ("q == 0", [], "unknown metrics.missing"),
        ("other > 0", [1], "unknown claim.not-measured"),
        ("q > 20", [BEYOND], "holds"),
        ("q > 40", [BEYOND], "unknown claim.not-exact"),
        ("q < 30", [BEYOND], "fails"),
        ("q > 0", [APART], "holds"),
        ("q > 2", [APART], "unknown claim.not-exact"),
        ("q falling", [9, 6, 3], "holds"),
        ("q not falling", [9, 6, 3], "fails"),
        ("q rising", [9, 6, 3], "fails"),
        ("q falling", [9, 3], "unknown claim.few-readings"),
        ("q not falling", [9, 3], "unknown claim.few-readings"),
        ("q falling", [9, BEYOND, 3], "unknown claim.not-exact"),
    ],
)
def test_a_comparison_needs_every_reading_and_a_trend_three(
    text: str, values: list[float | Reading], expected: str
) -> None:
    assert said(text, window({"q": values})) == expected


def test_what_is_unknown_decides_nothing_and_is_overruled_by_what_decides() -> None:
    given = window({"yes": [1], "no": [0], "open": []})
    assert said("yes > 0 and open > 0", given) == "unknown metrics.missing"
    assert said("no > 0 and open > 0", given) == "fails"
    assert said("yes > 0 or open > 0", given) == "holds"
    assert said("no > 0 or open > 0", given) == "unknown metrics.missing"
    assert said("open > 0 or open <= 0", given) == "unknown metrics.missing"
    assert said("not (open > 0 and no > 0)", given) == "holds"


def test_a_reading_that_is_old_or_outside_the_window_says_nothing() -> None:
    old = measured("q", [1.0, 1.0], start=NOW - 600, end=NOW - 121)
    assert said("q > 0", Window(NOW - 600, NOW, {"q": old})) == "unknown claim.stale"
    assert said("q > 0", Window(NOW - 600, NOW - 1.5, {"q": old})) == "holds"
    assert said("q > 0", Window(NOW - 60, NOW, {"q": old})) == "unknown claim.stale"
    later = measured("q", [1.0], start=NOW, end=NOW + 5)
    assert said("q > 0", Window(NOW - 60, NOW, {"q": later})) == "unknown claim.stale"


@pytest.mark.parametrize(
    ("possible", "idle", "busy", "hung", "saturated"),
    [
        (("idle",), "holds", "fails", "fails", "fails"),
        (("busy",), "fails", "holds", "fails", "fails"),
        (("saturated",), "fails", "holds", "fails", "holds"),
        (("hung",), "fails", "fails", "holds", "fails"),
        (("busy", "hung"), "fails", "unknown state.unread", "unknown state.unread", "fails"),
        (("busy", "saturated"), "fails", "holds", "fails", "unknown state.unread"),
        (("idle", "hung"), "unknown state.unread", "fails", "unknown state.unread", "fails"),
    ],
)
def test_a_state_holds_when_the_readings_leave_nothing_else(
    possible: tuple[StateWord, ...], idle: str, busy: str, hung: str, saturated: str
) -> None:
    given = window({}, state=state(*possible))
    found = [said(f"state == {word}", given) for word in ("idle", "busy", "hung", "saturated")]
    assert found == [idle, busy, hung, saturated]
    opposite = {"holds": "fails", "fails": "holds"}
    assert said("state != idle", given) == opposite.get(idle, idle)


def test_nobody_looked_at_the_engine() -> None:
    assert said("state != idle", window({})) == "unknown claim.no-state"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3, 2, 1], "falling"),
        ([1, 2, 3], "rising"),
        ([1, 1, 1], "neither"),
        ([0, 0, 0], "neither"),
        ([5, 5, 0], "falling"),
        ([100, 99, 98], "neither"),  # less than a tenth
        ([9, 1, 8], "neither"),  # up again at once
        ([9, 10, 5], "neither"),  # two pairs of three
        ([9, 7, 8, 5, 4], "falling"),  # one that goes the other way
        ([-1, -2, -3], "falling"),
        ([0, 1, 0, 2, 4], "rising"),
        ([9, 4], None),
        ([], None),
        ([float(v) for v in range(5000)], "rising"),
    ],
)
def test_a_trend_is_the_way_of_most_pairs_and_of_the_ends(values: list[float], expected: str | None) -> None:
    assert direction(values) == expected


def test_a_restart_begins_a_trend_anew() -> None:
    values = [50.0, 60, 5, 4, 3]
    assert said("q falling", window({"q": values}, lasts=60, started=-40)) == "holds"
    assert said("q rising", window({"q": values}, lasts=60, started=-40)) == "fails"
    assert said("q falling", window({"q": values}, lasts=60, started=-20)) == "unknown claim.few-readings"


def test_a_counter_that_went_back_has_no_trend() -> None:
    start, end = NOW - 60, NOW
    total = measured("t", [9.0, 10, 1, 2], start=start, end=end, query="sum(max by (dp_rank) (sglang:x_total))")
    ratio = measured("t", [9.0, 6, 4, 2], start=start, end=end, query="sum(x_sum) / sum(x_count)")
    assert said("t falling", Window(start, end, {"t": total})) == "unknown claim.went-back"
    assert said("t rising", Window(start, end, {"t": total})) == "unknown claim.went-back"
    assert said("t falling", Window(start, end, {"t": ratio})) == "holds"


def test_the_first_and_the_last_reading_are_cited() -> None:
    given = window({"q": [1, 2, 3], "t": [9, 6, 3], "one": [5]}, lasts=60)
    found = citations_of(read("q > 0 and t falling or one > 0"), given)
    assert [(c.name, c.query, c.value, c.time - NOW) for c in found] == [
        ("q", "sum(q)", 1, -60),
        ("q", "sum(q)", 3, 0),
        ("t", "sum(t)", 9, -60),
        ("t", "sum(t)", 3, 0),
        ("one", "sum(one)", 5, 0),
    ]
