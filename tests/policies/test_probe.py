"""A canary is slow by what canaries of its service took before, and by nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.probe import MOST_EARLIER, SLOW_FACTOR, SLOW_LEAST_S, probe


def test_the_probe_of_the_incident_is_slow() -> None:
    found = probe("router", 1000.0, 17.9, [0.3, 0.2, 0.4], ())
    assert (found.usual_s, found.n, found.slow) == (0.3, 3, True)


def test_without_an_earlier_one_nobody_knows() -> None:
    found = probe("router", 1000.0, 17.9, [], ())
    assert (found.usual_s, found.n, found.slow) == (None, 0, None)


@pytest.mark.parametrize(
    ("took_s", "slow"),
    [(0.1, False), (0.59, False), (0.61, True), (2.0, True)],  # 0.1 s is usual: half a second more, not thrice
)
def test_milliseconds_may_well_take_some_more(took_s: float, slow: bool) -> None:
    assert probe("router", 0.0, took_s, [0.1], ()).slow is slow


def test_only_the_newest_count() -> None:
    found = probe("router", 0.0, 1.0, [100.0] * 50 + [1.0] * MOST_EARLIER, ())
    assert (found.usual_s, found.n) == (1.0, MOST_EARLIER)


@given(st.lists(st.floats(0.01, 60), min_size=1, max_size=30), st.floats(0.01, 60))
def test_whatever_is_usual_a_usual_one_is_not_slow(earlier: list[float], took_s: float) -> None:
    found = probe("router", 0.0, took_s, earlier, ())
    assert found.usual_s is not None
    assert found.slow == (took_s > found.usual_s * SLOW_FACTOR and took_s > found.usual_s + SLOW_LEAST_S)
    assert probe("router", 0.0, found.usual_s, earlier, ()).slow is False
