"""How far correctness was looked at: what each level needs, and that no level says more than was measured."""

from __future__ import annotations

import math
import random

import pytest
from pydantic import ValidationError

from bot.cards.correctness import correctness, short_correctness
from policies.correctness import Correctness, Endings, Scores
from policies.correctness_file import CorrectnessError, read_correctness, read_pair

GSM8K = {"name": "gsm8k", "n": 1319, "a": 0.95, "b": 0.95, "only_a": 10, "only_b": 10}
ENDINGS = {
    "reasons_a": {"stop": 990, "length": 10}, "reasons_b": {"stop": 985, "length": 15},
    "tokens_a": (212.0, 180.0, 611.0), "tokens_b": (213.0, 181.0, 608.0),
}  # fmt: skip


def scores(**changes: object) -> Scores:
    return Scores.model_validate({**GSM8K, **changes})


@pytest.mark.parametrize(
    ("told", "level"),
    [
        ({"compared": 200, "differing": 0}, 1),
        ({"compared": 200, "differing": 1}, 0),
        ({"scores": GSM8K}, 2),
        ({"compared": 200, "differing": 3, "scores": GSM8K}, 2),
        ({"compared": 200, "differing": 0, "scores": GSM8K}, 2),
        ({"compared": 200, "differing": 0, "scores": GSM8K, "endings": ENDINGS}, 3),
        ({"compared": 200, "differing": 1, "scores": GSM8K, "endings": ENDINGS}, 2),
        ({"compared": 200, "differing": 0, "endings": ENDINGS}, 1),
        # 200 questions cannot rule out a loss of one point
        ({"scores": {"name": "gsm8k", "n": 200, "a": 0.95, "b": 0.95}}, 0),
        ({"compared": 20, "differing": 0, "scores": {"name": "gsm8k", "n": 200, "a": 0.95, "b": 0.95}}, 1),
        # a loss that is shown is not made good by prompts that agree
        ({"compared": 20, "differing": 0, "scores": {"name": "gsm8k", "n": 1319, "a": 0.95, "b": 0.90}}, 0),
    ],
)
def test_a_level_is_what_holds(told: dict[str, object], level: int) -> None:
    assert Correctness.model_validate(told).level == level


def test_none_differing_says_how_many_could() -> None:
    assert short_correctness(read_pair("0/200")) == ["0 of 200 answers differ (up to 1.5 % could)"]
    assert short_correctness(read_pair("0/20")) == ["0 of 20 answers differ (up to 15 % could)"]
    assert correctness(read_pair("3 / 200")) == ["correctness 3 of 200 differ"]
    assert correctness(None) == ["correctness: not measured"]
    assert read_pair("0/2").could_percent == 100


def test_a_score_is_told_with_n_interval_and_margin() -> None:
    (said,) = correctness(Correctness(scores=scores()))
    assert said == (
        "gsm8k: 95.0 % in A, 95.0 % in B, N=1319 (paired), difference +0.0 points, 95 % [-0.7, +0.7]: a loss of 1"
        " points is ruled out"
    )
    (said,) = correctness(Correctness(scores=Scores(name="gsm8k", n=200, a=0.95, b=0.94)))
    assert "N=200 (not paired), difference -1.0 points, 95 % [-5.6, +3.6]: a loss of 1 points is not ruled out" in said


def test_unpaired_the_standard_error_is_that_of_two_scores() -> None:
    low, high = Scores(name="x", n=1319, a=0.95, b=0.95).interval
    assert (high - low) / 2 / 1.96 == pytest.approx(math.sqrt(2) * 0.006, rel=0.02)  # 0.6 points each


def test_the_paired_interval_holds_the_truth_in_95_of_100_tries() -> None:
    dice = random.Random(1)
    inside = 0
    for _ in range(1200):
        left = right = only_a = only_b = 0
        for _ in range(150):
            a, b = dice.random() < 0.9, dice.random() < 0.9
            left, right = left + a, right + b
            only_a, only_b = only_a + (a and not b), only_b + (b and not a)
        found = Scores(name="x", n=150, a=left / 150, b=right / 150, only_a=only_a, only_b=only_b)
        inside += found.interval[0] <= 0 <= found.interval[1]
    assert inside / 1200 >= 0.93


@pytest.mark.parametrize(
    ("changes", "alike"),
    [
        ({}, True),
        ({"reasons_b": {"stop": 970, "length": 30}}, False),
        ({"reasons_b": {"stop": 980, "abort": 20}}, False),
        ({"tokens_b": (190.0, 181.0, 608.0)}, False),
        ({"tokens_b": (212.0, 180.0, 700.0)}, False),
        ({"reasons_a": {"stop": 0}}, False),
        ({"tokens_a": (0.0, 0.0, 0.0)}, False),
    ],
)
def test_answers_end_alike_within_a_point_and_2_percent(changes: dict[str, object], alike: bool) -> None:
    assert Endings.model_validate({**ENDINGS, **changes}).alike is alike


@pytest.mark.parametrize("changes", [{"only_b": None}, {"only_a": 900}, {"only_a": 10, "only_b": 40}, {"a": 1.2}])
def test_scores_that_contradict_themselves_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        scores(**changes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("compared: 20\ndiffering: 30\n", "30 answers differ of 20 compared"),
        ("compared: 20\n", "`compared` and `differing` belong together"),
        ("endings: {}\n", "endings.reasons_a"),
        ("{}", "neither answers nor scores"),
        ("- 1\n", "expected a mapping"),
        ("compared: &a 20\n", "an anchor"),
        ("compared: 20\ncompared: 30\n", "twice"),
        ("scores: {name: x, n: 10, a: 0.5, b: .nan}\n", "scores.b"),
        ("\x00", "c.yaml"),
    ],
)
def test_a_file_that_is_none_is_refused_with_its_field(text: str, said: str) -> None:
    with pytest.raises(CorrectnessError, match=r"c\.yaml") as error:
        read_correctness(text.encode(), "c.yaml")
    assert said in error.value.message


@pytest.mark.parametrize("text", ["0/0", "0", "x/y", "1/2/3", "-1/200", "3/2"])
def test_a_pair_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(CorrectnessError):
        read_pair(text)


def test_a_file_of_bytes_that_are_no_text_is_refused() -> None:
    for data in (b"\xff\xfe", b"a" * 70_000):
        with pytest.raises(CorrectnessError):
            read_correctness(data, "c.yaml")
