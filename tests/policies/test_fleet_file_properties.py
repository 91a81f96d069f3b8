"""Whatever is done to a fleet file, the reader answers: a fleet, or errors, never both and never a crash."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.fleet_file import FleetReading, read_fleet
from tests.shared import ROOT

EXAMPLE = (ROOT / "fleet.example.yaml").read_text(encoding="utf-8")
BARE = "".join(line for line in EXAMPLE.splitlines(keepends=True) if not line.lstrip().startswith("#"))
PIECES = sorted(set(re.findall(r"[A-Za-z0-9_.]+|[^\sA-Za-z0-9]|\s+", BARE)))
STRANGE = [
    *("", "null", "~", "yes", "off", "1:30", "010", ".inf", "1e999", "-1", "25", "25s", "0s", "<<", "*a", "&a x"),
    *("!!str", "!x", "---", "...", "|", ">", "? ", "- ", "{", "}", "[", "]", "\t", "\x00", "\ufeff", "\u2028", '"'),
    *('"\\ud800"', '"\\UFFFFFFFF"', "%TAG", "#", "@", "`", "http://[", "http://a:b@c", "ssh-ed25519 AAAA", "=", "é"),
    *("[a, [b]]", "{a: {b: c}}", "x" * 300, "(", "[a-", "R R * * *", "0 0 31 2 *", "2026-01-01", "９", "/", ".."),
]


def judge(text: str) -> FleetReading:
    """Read and check what always holds."""
    reading = read_fleet(text, "f.yaml")
    assert (reading.fleet is None) == bool(reading.errors)
    lines = text.count("\n") + text.count("\r") + text.count("\x85") + text.count("\u2028") + text.count("\u2029")
    for error in reading.errors:
        assert 1 <= error.line <= lines + 2
        assert error.message
        assert error.hint
        assert error.message.isprintable()
        assert error.hint.isprintable()
    assert list(reading.errors) == sorted(reading.errors, key=lambda e: e.line)
    return reading


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, len(BARE)), st.integers(0, 12), st.sampled_from(PIECES + STRANGE)),
        min_size=1,
        max_size=4,
    )
)
def test_random_edits_of_the_example_never_crash_the_reader(edits: list[tuple[int, int, str]]) -> None:
    text = BARE
    for at, cut, piece in edits:
        text = text[:at] + piece + text[at + cut :]
    judge(text)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(STRANGE))
def test_any_value_may_be_replaced_by_any_strange_one(place: int, strange: str) -> None:
    spots = list(re.finditer(r"(?<=: )[^\s{\[,}\]][^,}\]\n]*|(?<=[\[,] )[^\s,\]]+", BARE))
    spot = spots[place % len(spots)]
    judge(BARE[: spot.start()] + strange + BARE[spot.end() :])


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_answered(text: str) -> None:
    assert judge(text).fleet is None


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_line_that_goes_missing_is_noticed_or_was_optional(data: st.DataObject) -> None:
    lines = BARE.splitlines(keepends=True)
    gone = data.draw(st.integers(0, len(lines) - 1))
    judge("".join(lines[:gone] + lines[gone + 1 :]))
