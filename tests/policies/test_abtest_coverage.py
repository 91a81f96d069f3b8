"""The judge keeps its word on simulated A/Bs: 1.5 % noise of a run, 4 % drift over the session, seeded."""

from __future__ import annotations

import random

import pytest

from bench.coverage import BASE, SIZES, SWEEP, World, keeps
from policies.abtest.estimate import paired

NOTHING = World()
TRIES = 150


@pytest.mark.parametrize("n", SIZES)
def test_the_interval_of_pairs_holds_the_truth_in_95_of_100(n: int) -> None:
    draw = random.Random(n)
    held = 0
    tries = 2000
    for _ in range(tries):
        a: list[float] = []
        b: list[float] = []
        for pair in range(n):
            for slot, arm in enumerate((a, b) if pair % 2 == 0 else (b, a)):
                drift = 1 + NOTHING.drift * (2 * pair + slot) / (2 * n - 1)
                arm.append(BASE * drift * draw.gauss(1, NOTHING.cv))
        interval = paired(a, b).interval
        assert interval is not None
        held += interval[0] <= 1 <= interval[1]
    assert held / tries >= 0.93


@pytest.mark.parametrize("n", SIZES)
def test_no_effect_is_seldom_called_an_improvement(n: int) -> None:
    found = keeps(11, TRIES, NOTHING, n)
    assert found.improved <= 0.05
    assert found.covered >= 0.91  # of few tries; the share of many is the test above


@pytest.mark.parametrize("n", [3, 5])
def test_nor_is_any_of_four_loads(n: int) -> None:
    assert keeps(12, TRIES // 3, NOTHING, n, loads=SWEEP).improved <= 0.05


@pytest.mark.parametrize("n", SIZES)
def test_nor_are_blocks_though_their_interval_does_not_hold(n: int) -> None:
    assert keeps(13, TRIES, NOTHING, n, interleaved=False).improved <= 0.05


def test_an_effect_that_is_there_is_found() -> None:
    assert keeps(14, TRIES, World(cv=0.02, effect=0.128), 3).improved >= 0.85
    assert keeps(15, TRIES, World(cv=0.02, effect=0.057), 10).improved >= 0.95
    assert keeps(16, TRIES, World(cv=0.02, effect=0.128), 5, interleaved=False).improved >= 0.85
