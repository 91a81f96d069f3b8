"""A knob's value: does the text fit the knob's type and range?

The environment holds text and the proof compares bytes, so a value has one spelling: `512`, never `0512` or `512.`.
"""

from __future__ import annotations

import math
import re

from policies.finding import Finding
from policies.fleet import Knob

INT = re.compile(r"0|-?[1-9][0-9]*")
FLOAT = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
TRUTHS = ("0", "1", "true", "false")


def value_problem(knob: Knob, text: str) -> Finding | None:
    """Why `text` cannot be a value of `knob`; None when it can."""
    if not text.isprintable():  # also what looks like nothing, or like other text, on a card
        return _problem(knob, text, "value.control-character", "printable text")
    if knob.type == "int":
        return _number(knob, text, INT, "a whole number without leading zeros")
    if knob.type == "float":
        return _number(knob, text, FLOAT, "a number such as 0.85")
    if knob.type == "bool":
        return None if text in TRUTHS else _problem(knob, text, "value.type", "one of " + ", ".join(TRUTHS))
    if knob.type == "enum":
        expected = "one of " + ", ".join(knob.values)
        return None if text in knob.values else _problem(knob, text, "value.not-listed", expected)
    if knob.pattern is not None and re.fullmatch(knob.pattern, text) is None:
        return _problem(knob, text, "value.pattern", f"text matching {knob.pattern}")
    return None


def _number(knob: Knob, text: str, spelling: re.Pattern[str], expected: str) -> Finding | None:
    if spelling.fullmatch(text) is None or not math.isfinite(float(text)):
        return _problem(knob, text, "value.type", expected)
    if knob.range is not None and not knob.range[0] <= float(text) <= knob.range[1]:
        low, high = (f"{bound:g}" for bound in knob.range)
        return _problem(knob, text, "value.range", f"{low} to {high}")
    return None


def _problem(knob: Knob, text: str, code: str, expected: str) -> Finding:
    values: dict[str, str | int | float | None] = {"knob": knob.name, "value": text[:120], "expected": expected}
    return Finding(code=code, effect="refuse", values=values)
