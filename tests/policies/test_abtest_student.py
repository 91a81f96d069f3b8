"""Our t distribution beside scipy's, and Holm beside its definition."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.abtest.estimate import holm
from policies.abtest.student import quantile, tail

DF = (1.0, 1.37, 2.0, 2.5, 3.0, 4.0, 5.5, 9.0, 18.0, 29.9, 100.0, 1000.0, 1e5)
T = (0.0, 1e-3, 0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 6.3, 12.7, 40.0, 300.0)
P = (0.5, 0.6, 0.8, 0.9, 0.95, 0.975, 0.99, 0.995, 0.9995, 0.999999)


def test_tails_agree_with_scipy_to_1e_9() -> None:
    from scipy import stats  # one second to import: only here

    for df in DF:
        for t in T:
            for signed in (t, -t):
                assert tail(signed, df) == pytest.approx(float(stats.t.sf(signed, df)), rel=1e-9, abs=1e-13), (t, df)


def test_quantiles_agree_with_scipy_to_1e_9() -> None:
    from scipy import stats  # as above

    for df in DF:
        for p in P:
            for one in (p, 1 - p):
                assert quantile(one, df) == pytest.approx(float(stats.t.ppf(one, df)), rel=1e-9, abs=1e-9), (p, df)


@pytest.mark.parametrize("t", [1e-12, 1e-8, 1e-4, 0.5, 3.0, 1e4, 1e9])
def test_one_degree_of_freedom_is_the_cauchy_distribution(t: float) -> None:
    # scipy 1.17 is off by 1.6e-9 at t = 1e-8
    assert tail(t, 1) == pytest.approx(0.5 - math.atan(t) / math.pi, rel=1e-9, abs=1e-16)


@pytest.mark.parametrize(("df", "t"), [(1, 12.706204736), (2, 4.30265273), (4, 2.776445105), (9, 2.262157163)])
def test_quantiles_are_those_of_the_printed_tables(df: float, t: float) -> None:
    assert quantile(0.975, df) == pytest.approx(t, rel=1e-9)


@settings(max_examples=200, deadline=None)
@given(st.floats(1, 1e4), st.floats(-50, 50))
def test_a_tail_is_a_probability_and_the_other_side_is_its_rest(df: float, t: float) -> None:
    here = tail(t, df)
    assert 0 <= here <= 1
    assert here + tail(-t, df) == pytest.approx(1, abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.floats(1, 500), st.floats(0.001, 0.999))
def test_a_quantile_undoes_the_tail(df: float, p: float) -> None:
    assert tail(quantile(p, df), df) == pytest.approx(1 - p, rel=1e-9)


def test_infinity_has_no_tail() -> None:
    assert (tail(math.inf, 3), tail(-math.inf, 3)) == (0.0, 1.0)


def test_holm_multiplies_the_smallest_most_and_keeps_the_order() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
    assert holm([0.02]) == [0.02]
