"""A knob's value has one spelling and stays inside its range."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.knobs import TRUTHS, value_problem
from tests.policies import builders as b

GIVEN = settings(max_examples=100, deadline=None)
WIDE = (-1e300, 1e300)


def code(text: str, **knob: Any) -> str | None:
    """The code of the problem, if there is one."""
    found = value_problem(b.knob(**knob), text)
    return found.code if found else None


@GIVEN
@given(st.integers(-(10**12), 10**12))
def test_a_whole_number_is_taken_as_python_spells_it(number: int) -> None:
    assert code(str(number), range=WIDE) is None


@GIVEN
@given(st.one_of(st.text(), st.from_regex(r"[-+]?0*[0-9]{1,6}(\.0*)?", fullmatch=True)))
def test_no_two_texts_are_the_same_whole_number(text: str) -> None:
    if code(text, range=WIDE) is None:
        assert str(int(text)) == text


@GIVEN
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_taken_as_python_spells_it(number: float) -> None:
    assert code(repr(number), type="float", range=(-math.inf, math.inf)) is None


@GIVEN
@given(st.one_of(st.text(), st.from_regex(r"[-+]?[0-9.]{0,6}([eE][-+]?[0-9]{0,4})?", fullmatch=True)))
def test_what_is_taken_for_a_number_is_a_finite_one(text: str) -> None:
    if code(text, type="float", range=(-math.inf, math.inf)) is None:
        assert math.isfinite(float(text))
        assert text == text.strip()
        assert "_" not in text


@GIVEN
@given(st.integers(-100, 100), st.integers(-50, 0), st.integers(0, 50))
def test_both_ends_of_the_range_are_inside(number: int, low: int, high: int) -> None:
    for kind in ("int", "float"):
        assert (code(str(number), type=kind, range=(low, high)) is None) is (low <= number <= high)


@GIVEN
@given(st.text(), st.sampled_from(["int", "float", "str", "bool", "enum"]))
def test_a_value_that_is_taken_can_be_seen(text: str, kind: str) -> None:
    if code(text, type=kind, range=WIDE, values=("a", "\u200b")) is None:
        assert text.isprintable()


@GIVEN
@given(st.text(max_size=8))
def test_a_truth_value_is_one_of_four_words(text: str) -> None:
    assert (code(text, type="bool") is None) is (text in TRUTHS)
    assert all(code(word, type="bool") is None for word in TRUTHS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("512", None), ("1", None), ("4096", None),
        ("0", "value.range"), ("4097", "value.range"), ("-1", "value.range"), ("9" * 400, "value.type"),
        ("0512", "value.type"), ("512.", "value.type"), ("512.0", "value.type"), ("5e2", "value.type"),
        ("+512", "value.type"), ("-0", "value.type"), (" 512", "value.type"), ("512 ", "value.type"),
        ("512\n", "value.control-character"), ("5_12", "value.type"), ("0x200", "value.type"),
        ("٥١٢", "value.type"), ("５１２", "value.type"), ("512\u200b", "value.control-character"),
        ("\u202e215", "value.control-character"), ("512\x00", "value.control-character"),
        ("512\x85", "value.control-character"), ("512\u00a0", "value.control-character"),
        ("512  # tuned", "value.type"), ("1;reboot", "value.type"), ("$(reboot)", "value.type"), ("", "value.type"),
        ("nan", "value.type"), ("inf", "value.type"), ("None", "value.type"), ("unset", "value.type"),
    ],
)  # fmt: skip
def test_a_whole_number_has_one_spelling(text: str, expected: str | None) -> None:
    assert code(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.85", None), ("1", None), ("1e-3", None), ("0", None), ("-0.5", "value.range"), ("1.01", "value.range"),
        (".5", "value.type"), ("5.", "value.type"), ("00.5", "value.type"), ("nan", "value.type"),
        ("inf", "value.type"), ("1e999", "value.type"), ("0,85", "value.type"), ("1e", "value.type"),
    ],
)  # fmt: skip
def test_a_number_has_digits_on_both_sides_of_its_point(text: str, expected: str | None) -> None:
    assert code(text, type="float", range=(0.0, 1.0)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("fa3", None), ("FA3", "value.not-listed"), ("fa", "value.not-listed"), ("", "value.not-listed")],
)
def test_a_listed_value_is_taken_as_it_is_listed(text: str, expected: str | None) -> None:
    assert code(text, type="enum", range=None, values=("fa3", "triton")) == expected


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("anything goes", None, None), ("", None, None), ("ü☃", None, None), ("a\tb", None, "value.control-character"),
        ("a1", "[a-z][0-9]", None), ("a12", "[a-z][0-9]", "value.pattern"), ("xa1", "[a-z][0-9]", "value.pattern"),
        ("a1\n", "[a-z][0-9]", "value.control-character"), ("b", "a|b", None), ("ab", "a|b", "value.pattern"),
    ],
)  # fmt: skip
def test_a_text_matches_its_pattern_as_a_whole(text: str, pattern: str | None, expected: str | None) -> None:
    assert code(text, type="str", range=None, pattern=pattern) == expected


def test_the_answer_quotes_the_value_and_says_what_was_expected() -> None:
    found = value_problem(b.knob(), "4097")
    assert found is not None
    assert found.effect == "refuse"
    assert found.values == {"knob": "TARGET_CTAS", "value": "4097", "expected": "1 to 4096"}
    long = value_problem(b.knob(), "9" * 4_000_000)
    assert long is not None
    assert len(str(long.values["value"])) == 120
