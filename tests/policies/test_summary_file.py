"""A typed evidence summary: what people write is read as they meant it, and nothing else gets through."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policies.evidence import Correctness, Point, Summary
from policies.summary_file import MAX_BYTES, SummaryError, read_summary

TYPED = """\
value: 512
baseline: unset
metric: output_throughput
points: {C64: +12.8 %, C96: +5.7 %, C80: +1.2 %}
correctness: {compared: 200, differing: 0}
"""
POINTS = "points: {C64: +12.8 %}\n"
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nknob: *c\n"
PIECES = [
    "value", "points", "baseline", "knob", ": ", ":", "\n", "  ", "- ", "{", "}", "[", "]", ",", "512", "C64",
    "+12.8 %", "'", '"', "!!int", "!!timestamp", "!", "&a ", "*a", "&-", "*-", "|", ">", "#", "%", "@", "`", "?", "? ",
    "<<", "=", "~", "null", ".inf", ".nan", "0x_", "1:99", "9999-12-31T23:59:59-14:00", "2026-13-45", "---", "...",
    "\t", "\x85", "\u2028", "\ufeff", "\0", "\ud800", "ratio", "n_a", "1e400", "on", "010",
]  # fmt: skip
TEXTS = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=20).map("".join), st.text(st.characters(exclude_categories=()))
)
VALUES = st.one_of(
    st.from_regex(r"-?[0-9]{1,6}(\.[0-9]{1,3})?", fullmatch=True), st.text(st.characters(categories=("L", "N")))
)


def read(text: str) -> Summary:
    """The summary of TARGET_CTAS."""
    return read_summary(text, "ab.yaml", "TARGET_CTAS")


def refused(text: str) -> str:
    """The message of the refusal."""
    with pytest.raises(SummaryError) as error:
        read(text)
    return error.value.message


def test_a_summary_as_it_is_typed() -> None:
    assert read(TYPED) == Summary(
        knob="TARGET_CTAS",
        value="512",
        baseline=None,
        points=(
            Point(concurrency=64, ratio=1.128),
            Point(concurrency=96, ratio=1.057),
            Point(concurrency=80, ratio=1.012),
        ),
        correctness=Correctness(compared=200, differing=0),
    )


def test_json_is_read_too() -> None:
    text = '{"value": "512", "points": {"C64": {"ratio": 1.128, "n_a": 3, "n_b": 4}}, "knob": "TARGET_CTAS"}'
    assert read(text).points == (Point(concurrency=64, ratio=1.128, n_a=3, n_b=4),)


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("512", "512"), ("'512'", "512"), ("0512", "0512"), ("010", "010"), ("0x200", "0x200"), ("1_000", "1_000"),
        ("0.50", "0.50"), ("1e3", "1e3"), ("true", "true"), ("on", "on"), ("yes", "yes"), ("1:30", "1:30"),
        ("2026-12-01", "2026-12-01"), ("a b", "a b"), ('"a: b"', "a: b"), ("'null'", "null"), ("''", ""),
    ],
)  # fmt: skip
def test_a_value_is_kept_as_it_was_typed(typed: str, value: str) -> None:
    assert read(f"value: {typed}\n{POINTS}").value == value
    if value:
        assert read(f"value: 1\nbaseline: {typed}\n{POINTS}").baseline == value


@pytest.mark.parametrize("typed", ["unset", "null", "~", "", "'unset'"])
def test_a_baseline_that_was_not_set_has_no_value(typed: str) -> None:
    assert read(f"value: 512\nbaseline: {typed}\n{POINTS}").baseline is None


def test_the_day_of_measuring_is_kept_as_it_was_typed() -> None:
    assert read(f"value: 512\nmeasured_on: 2026-11-29\n{POINTS}").measured_on == "2026-11-29"


@pytest.mark.parametrize(
    ("typed", "ratio"),
    [("+12.8 %", 1.128), ("+12.8%", 1.128), ("-3 %", 0.97), ("\u22123 %", 0.97), ("+ 0 %", 1.0), ("'+100 %'", 2.0)],
)
def test_a_point_is_a_change_in_percent(typed: str, ratio: float) -> None:
    assert read(f"value: 512\npoints: {{C64: {typed}}}").points[0].ratio == ratio


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a mapping with `value` and `points`, found NoneType"),
        ("512", "expected a mapping with `value` and `points`, found int"),
        ("- value: 512", "expected a mapping with `value` and `points`, found list"),
        (POINTS, "value: field required"),
        ("value: 512", "points: field required"),
        ("value: 512\npoints: {}", "points: tuple should have at least 1 item"),
        ("value: 512\npoints: 5", "points: input should be a valid tuple"),
        (f"value: [512]\n{POINTS}", "value: input should be a valid string"),
        (f"value:\n{POINTS}", "value: input should be a valid string"),
        (f"value: 512\nvalue: 256\n{POINTS}", ":2: not a summary: `value` twice, expected it once"),
        ("value: 512\npoints: {C64: +1 %, C64: +2 %}", ":2: not a summary: `C64` twice, expected it once"),
        ("value: 512\npoints: {C64: +1 %, 64: +2 %}", "point C64 twice, expected it once"),
        ("value: 512\npoints: {fast: +1 %}", "point `fast`: expected a concurrency such as C64"),
        ("value: 512\npoints: {C0: +1 %}", "points.0.concurrency: input should be greater than or equal to 1"),
        ("value: 512\npoints: {C64: 12.8 %}", "`12.8 %` is no change in percent, expected such as `+12.8 %`"),
        ("value: 512\npoints: {C64: 1.128}", "`1.128` is no change in percent"),
        ("value: 512\npoints: {C64: -100 %}", "points.0.ratio: input should be greater than 0"),
        ("value: 512\npoints: {C64: {ratio: .inf}}", "points.0.ratio: input should be a finite number"),
        ("value: 512\npoints: {C64: {ratio: .nan}}", "points.0.ratio"),
        ("value: 512\npoints: {C64: {ratio: 1, n_a: 0}}", "points.0.n_a: input should be greater than or equal to 1"),
        ("value: 512\npoints: {C64: {n: 3}}", "points.0.n: extra inputs are not permitted"),
        (f"value: 512\nbasline: 1\n{POINTS}", "basline: extra inputs are not permitted, did you mean `baseline`?"),
        (f"value: 512\nsurprise: 1\n{POINTS}", "surprise: extra inputs are not permitted"),
        (f"value: 512\nknob: OTHER\n{POINTS}", "knob is `OTHER`, asked for `TARGET_CTAS`"),
        (f"value: 512\ncorrectness: {{compared: 0, differing: 0}}\n{POINTS}", "correctness.compared"),
        (f"value: 512\ncorrectness: {{compared: 200, differing: -1}}\n{POINTS}", "correctness.differing"),
        ("value: [", "not a summary"),
        ("value: 512\n--- \nvalue: 256", "not a summary: but found another document"),
    ],
)  # fmt: skip
def test_a_summary_that_is_wrong_is_refused_by_the_name_of_the_field(text: str, message: str) -> None:
    assert message in refused(text)
    assert refused(text).startswith("ab.yaml:")


def test_every_wrong_field_is_named_at_once() -> None:
    assert refused(f"metric: 5\nbetter: faster\n{POINTS}").splitlines() == [
        "ab.yaml: value: field required",
        "ab.yaml: metric: input should be a valid string",
        "ab.yaml: better: input should be 'higher' or 'lower'",
    ]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (BOMB, "an anchor"),
        (BOMB.replace("&", "&-").replace("*", "*-"), "an anchor"),
        ("a: *b", "an alias"),
        ("a: &a [*a]", "an anchor"),
        ("? &x a\n: 1", "an anchor"),
        ("a: !!python/object/apply:os.system [ls]", "a tag"),
        ("a: !!int ''", "a tag"),
        ("a: !!timestamp x", "a tag"),
        ("!!binary a: 1", "a tag"),
    ],
)
def test_anchors_aliases_and_tags_are_refused_before_anything_is_made_of_them(text: str, what: str) -> None:
    assert f":1: not a summary: {what}, expected plain values" in refused(text)


@pytest.mark.parametrize("text", ["[" * 1_000, "- " * 30_000, "? " * 30_000, "a: " + "9" * 60_000])
def test_a_text_made_to_hurt_is_refused(text: str) -> None:
    assert "not a summary" in refused(text)


def test_a_text_that_is_too_long_is_refused_unread() -> None:
    assert refused("#" * (MAX_BYTES + 1)) == f"ab.yaml: larger than {MAX_BYTES} bytes, expected a typed summary"
    assert "larger than" in refused("é" * (MAX_BYTES // 2 + 1))


def test_stars_and_ampersands_in_a_note_are_no_aliases() -> None:
    assert read(f"value: 512\nnote: see *bold* & more\n{POINTS}").note == "see *bold* & more"


@settings(max_examples=500, deadline=None)
@given(TEXTS)
@example("9999-12-31T23:59:59-14:00: 1")
@example("a: 1" + ":59" * 200 + ".5")
@example("[1]: 2")
@example("<<: 1")
@example("= : 1")
@example("\ud800")
@example("a: ='")
def test_no_text_is_answered_with_anything_but_a_summary_or_a_refusal(text: str) -> None:
    try:
        said = read(text).knob
    except SummaryError as error:
        said = error.message
    assert said == "TARGET_CTAS" or said.startswith("ab.yaml")


@settings(max_examples=100, deadline=None)
@given(VALUES, st.dictionaries(st.integers(1, 999_999), st.floats(0.01, 100), min_size=1, max_size=5))
def test_a_summary_that_was_written_down_is_read_back(value: str, points: dict[int, float]) -> None:
    document = {"value": value, "points": {f"C{load}": {"ratio": ratio} for load, ratio in points.items()}}
    summary = read(yaml.safe_dump(document, allow_unicode=True))
    assert (summary.value, {p.concurrency: p.ratio for p in summary.points}) == (value, points)
