"""How long a restart order takes: from recorded restarts only."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.estimate import estimate
from policies.fleet import Fleet
from policies.planning.steps import instances_of
from tests.policies import builders as b

FLEET = b.fleet()
TWO = b.fleet(hosts=("gpu1", "gpu2"))
RANKS = [(1, 1), (2, 2), (5, 5), (9, 9), (10, 9), (11, 10), (20, 18), (21, 19), (30, 27)]
SECONDS = st.lists(st.floats(0.1, 1e4), min_size=1, max_size=40)


def alone(fleet: Fleet, order: str) -> list[tuple[str]]:
    """Every instance of an order in a stage of its own."""
    return [(i,) for i in instances_of(fleet, order)]


def numbers(fleet: Fleet, order: str, boots: dict[str, list[float]]) -> tuple[float, float, int] | None:
    """Median, p90 and n of the estimate."""
    found = estimate(alone(fleet, order), boots)
    return (found.median_s, found.p90_s, found.n) if found else None


def test_an_order_takes_the_sum_of_its_restarts() -> None:
    boots = {"prefill@gpu1": [68.0, 70.0, 66.0], "decode@gpu1": [72.0], "router@gpu1": [4.0, 2.0]}
    assert numbers(FLEET, "co-restart", boots) == (68 + 72 + 3, 70 + 72 + 4, 1)
    assert numbers(FLEET, "decode-only", boots) == (72, 72, 1)


@pytest.mark.parametrize(
    "boots",
    [
        {},
        {"prefill@gpu1": [68.0], "decode@gpu1": [72.0]},
        {"prefill@gpu1": [68.0], "decode@gpu1": [], "router@gpu1": [4.0]},
        {"prefill@gpu1": [68.0], "decode@gpu9": [72.0], "router@gpu1": [4.0]},
    ],
)
def test_one_instance_without_a_record_leaves_no_estimate(boots: dict[str, list[float]]) -> None:
    assert estimate(alone(FLEET, "co-restart"), boots) is None


def test_every_replica_counts() -> None:
    boots = {"decode@gpu1": [60.0, 62.0], "decode@gpu2": [80.0]}
    assert numbers(TWO, "decode-only", boots) == (61 + 80, 62 + 80, 1)
    assert estimate(alone(TWO, "decode-only"), {"decode@gpu1": [60.0]}) is None


@pytest.mark.parametrize(("n", "rank"), RANKS)
def test_p90_is_the_nearest_rank(n: int, rank: int) -> None:
    found = estimate(alone(FLEET, "decode-only"), {"decode@gpu1": [float(s) for s in range(n, 0, -1)]})
    assert found is not None
    assert (found.p90_s, found.n) == (rank, n)


@given(SECONDS)
def test_p90_is_a_restart_that_was_seen_and_nine_of_ten_were_not_longer(seconds: list[float]) -> None:
    found = estimate(alone(FLEET, "decode-only"), {"decode@gpu1": seconds})
    assert found is not None
    assert found.p90_s in seconds
    assert sum(s <= found.p90_s for s in seconds) >= math.ceil(0.9 * len(seconds))
    assert min(seconds) <= found.median_s <= found.p90_s <= max(seconds) or len(seconds) == 1


@given(SECONDS, st.randoms(use_true_random=False))
def test_the_order_of_the_records_does_not_matter(seconds: list[float], random: object) -> None:
    assert estimate(alone(FLEET, "decode-only"), {"decode@gpu1": seconds}) == estimate(
        alone(FLEET, "decode-only"), {"decode@gpu1": sorted(seconds, reverse=True)}
    )
