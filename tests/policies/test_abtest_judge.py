"""What runs that are comparable show: one word for each load and one for all of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.abtest.judge import Question, judge
from policies.abtest.judgement import Judgement, Margins
from policies.bench.run import Load
from tests.policies.runs import arm, ask, codes, run

A = [1000.0, 1010.0, 995.0, 1004.0, 1001.0]
NOISE = [1.002, 0.997, 1.001, 0.999, 1.0005]


def times(factor: float, values: list[float] = A) -> list[float]:
    return [a * factor * noise for a, noise in zip(values, NOISE, strict=False)]


def test_a_clear_improvement_with_an_interval_improves() -> None:
    found = ask(arm(A), arm(times(1.128)))
    (point,) = found.points
    assert (found.verdict, point.klass, point.n_a, point.n_b) == ("improves", "improves", 5, 5)
    assert point.ratio == pytest.approx(1.128, rel=1e-3)
    assert point.ci_low is not None
    assert point.ci_high is not None
    assert 1.12 < point.ci_low < point.ratio < point.ci_high < 1.14
    assert found.good


def test_no_difference_with_little_noise_is_no_worse() -> None:
    found = ask(arm(A), arm(times(1.0)))
    assert (found.verdict, found.points[0].klass) == ("no_worse", "no_worse")
    bound = found.points[0].bound
    assert bound is not None
    assert 0.98 < bound < 1


def test_failing_to_find_a_difference_is_not_no_worse() -> None:
    found = ask(arm([1000.0, 1100.0, 950.0]), arm([1060.0, 990.0, 1010.0]))
    assert (found.verdict, found.good) == ("inconclusive", False)


def test_a_clear_loss_regresses() -> None:
    assert ask(arm(A), arm(times(0.95))).verdict == "regresses"


def test_less_than_is_useful_is_no_improvement() -> None:
    found = ask(arm(A), arm(times(1.008)))
    assert found.verdict == "no_worse"


def test_one_run_per_arm_is_observed_without_an_interval() -> None:
    found = ask(arm([1000.0]), arm([1128.0]))
    (point,) = found.points
    assert (found.verdict, point.klass) == ("observed", "observed")
    assert (point.ci_low, point.ci_high, point.bound, point.p_improves) == (None, None, None, None)
    assert point.ratio == pytest.approx(1.128)
    assert "one-run" in codes(found)


def test_two_runs_have_an_interval_and_stay_weak() -> None:
    found = ask(arm([1000.0, 1001.0]), arm([1300.0, 1302.0]))
    (point,) = found.points
    assert (found.verdict, point.klass) == ("weak", "weak")
    assert point.ci_low is not None
    assert "two-runs" in codes(found)


def test_a_latency_is_better_when_it_is_lower() -> None:
    question = Question(metric="median_tpot_ms", interleaved=True)
    faster = [run(1000.0, median_tpot=8.0 * n) for n in NOISE]
    slower = [run(1000.0, median_tpot=10.0 * n) for n in NOISE]
    same = [run(1000.0, median_tpot=9.0 * n) for n in (1.0, 1.001, 0.999, 1.002, 0.998)]
    base = [run(1000.0, median_tpot=9.0) for _ in NOISE]
    better = ask(base, faster, question)
    assert (better.verdict, better.better) == ("improves", "lower")
    assert better.points[0].ratio < 1
    assert ask(base, slower, question).verdict == "regresses"
    assert ask(base, same, question).verdict == "no_worse"


def test_the_margin_of_a_tail_is_wider_than_that_of_a_median() -> None:
    noise = (1.07, 1.06, 1.08, 1.07, 1.065)
    base = [run(1000.0) for _ in noise]
    tail = [run(1000.0, p99_ttft=200.0 * n) for n in noise]
    typical = [run(1000.0, median_ttft=80.0 * n) for n in noise]
    assert ask(base, tail, Question(metric="p99_ttft_ms", interleaved=True)).points[0].klass == "regresses"
    loose = Margins(useful=0.2)
    assert ask(base, tail, Question("p99_ttft_ms", True, loose)).verdict == "no_worse"
    assert ask(base, typical, Question("median_ttft_ms", True, loose)).verdict == "inconclusive"


def test_margins_stand_in_the_record() -> None:
    found = ask(arm(A), arm(times(0.97)), Question(interleaved=True, margins=Margins(throughput=0.05, useful=0.04)))
    assert found.verdict == "no_worse"
    assert (found.margins.throughput, found.margins.useful) == (0.05, 0.04)
    assert Judgement.model_validate_json(found.model_dump_json()) == found


def test_pairs_that_share_a_drift_still_show_what_separate_runs_do_not() -> None:
    drift = [1.0, 0.97, 0.94, 0.91, 0.88]
    a = [1000.0 * d for d in drift]
    b = [1030.0 * d * n for d, n in zip(drift, NOISE, strict=True)]
    assert ask(arm(a), arm(b)).verdict == "improves"
    separate = judge(arm(a), arm(b), Question(interleaved=False))
    assert separate.verdict == "inconclusive"
    assert {"not-interleaved", "drift"} <= codes(separate)


def test_separate_runs_with_a_drift_are_weak_at_most() -> None:
    b = [1005.0, 1011.0, 1022.0, 1028.0, 1033.0]
    found = judge(arm([1000.0, 1001.0, 999.0, 1000.5, 1000.2]), arm(b), Question(margins=Margins(throughput=0.05)))
    assert found.verdict == "weak"
    assert "drift" in codes(found, "warn")


def test_separate_runs_of_different_number_are_judged() -> None:
    found = judge(arm(A), arm(times(1.1)[:3]), Question())
    assert (found.verdict, found.points[0].n_a, found.points[0].n_b) == ("improves", 5, 3)


def test_interleaved_runs_of_different_number_are_no_pairs() -> None:
    found = ask(arm(A), arm(times(1.1)[:4]))
    assert (found.verdict, "unpaired" in codes(found)) == ("weak", True)


def many(a: dict[int, list[float]], b: dict[int, list[float]], today: int | None = None) -> Judgement:
    left = [r for c, values in a.items() for r in arm(values, concurrency=c)]
    right = [r for c, values in b.items() for r in arm(values, concurrency=c)]
    return judge(left, right, Question(interleaved=True, today=today))


def test_the_best_of_many_points_is_adjusted_for_having_been_chosen() -> None:
    lucky = [1.035, 1.02, 1.045]
    alone = many({64: A[:3]}, {64: [a * f for a, f in zip(A, lucky, strict=False)]})
    assert alone.points[0].p_improves is not None
    assert alone.points[0].p_improves < 0.15
    loads = [1, 2, 4, 8, 16, 24, 32, 48, 96]
    a = {64: A[:3]} | dict.fromkeys(loads, A[:3])
    b = {64: [v * f for v, f in zip(A, lucky, strict=False)]} | {c: times(1.0)[:3] for c in loads}
    point = next(p for p in many(a, b).points if p.load.concurrency == 64)
    assert point.p_improves is not None
    assert point.p_improves == pytest.approx(min(1.0, 10 * alone.points[0].p_improves))
    assert point.klass == "no_worse"


def test_every_point_has_to_be_no_worse() -> None:
    found = many({1: A, 64: A}, {1: times(0.99), 64: times(1.2)})
    assert [p.klass for p in found.points] == ["no_worse", "improves"]
    assert found.verdict == "improves"
    noisy = many({1: [1000.0, 1100.0, 950.0], 64: A}, {1: [1060.0, 990.0, 1010.0], 64: times(1.2)})
    assert noisy.verdict == "inconclusive"
    assert many({1: A[:1], 64: A}, {1: times(1.0)[:1], 64: times(1.2)}).verdict == "observed"
    assert many({1: A[:2], 64: A}, {1: times(1.0)[:2], 64: times(1.2)}).verdict == "weak"


def test_an_improvement_at_one_load_for_a_loss_at_another_is_a_trade_off() -> None:
    assert many({1: A, 64: A}, {1: times(0.9), 64: times(1.2)}).verdict == "trade_off"


def test_points_above_todays_load_do_not_count_and_below_the_highest_is_outside() -> None:
    a, b = {32: A, 64: A, 128: A}, {32: times(1.0), 64: times(1.1), 128: times(0.8)}
    assert many(a, b).verdict == "trade_off"
    assert many(a, b, today=64).verdict == "improves"
    assert many(a, b, today=40).verdict == "no_worse"
    assert many(a, b, today=500).verdict == "outside"


def test_throughput_paid_with_latency_is_a_trade_off() -> None:
    slower = [
        run(v, median_tpot=9.0 * 1.12 * n, order=i) for i, (v, n) in enumerate(zip(times(1.15), NOISE, strict=True))
    ]
    found = ask(arm(A), slower)
    assert (found.verdict, found.points[0].klass) == ("trade_off", "improves")
    traded = next(f for f in found.problems if f.code == "abtest.traded")
    assert traded.values == {"point": "C64", "metric": "median_tpot_ms", "percent": "+12.0", "margin": "5"}


def test_a_latency_that_is_not_shown_to_be_worse_is_no_trade_off() -> None:
    jumpy = [
        run(v, p99_ttft=p, order=i) for i, (v, p) in enumerate(zip(times(1.15), (190, 420, 180, 230, 200), strict=True))
    ]
    assert ask(arm(A), jumpy).verdict == "improves"


def test_latency_paid_with_throughput_is_a_trade_off() -> None:
    faster = [run(v, median_tpot=7.0, order=i) for i, v in enumerate(times(0.9))]
    assert ask(arm(A), faster, Question(metric="median_tpot_ms", interleaved=True)).verdict == "trade_off"


def test_loads_without_a_concurrency_are_points_too() -> None:
    load = Load(request_rate=4.0, dataset="random")
    a = [run(v, load=load, order=i) for i, v in enumerate(A)]
    b = [run(v, load=load, order=i) for i, v in enumerate(times(1.05))]
    found = ask(a, b)
    assert [p.load.label for p in found.points] == ["4 req/s"]


@pytest.mark.parametrize(
    ("metric", "code"), [("no_such", "no-direction"), ("std_ttft_ms", "no-direction"), ("p90_ttft_ms", "no-metric")]
)
def test_a_metric_that_cannot_be_judged_is_invalid(metric: str, code: str) -> None:
    found = ask(arm(A), arm(A), Question(metric=metric))
    assert (found.verdict, found.points, codes(found)) == ("invalid", (), {code})


def test_zero_and_no_runs_are_invalid() -> None:
    assert codes(ask(arm(A), arm([0.0]))) == {"zero"}
    assert codes(ask([], arm(A))) == {"no-runs"}
    assert ask([], []).verdict == "invalid"


def test_equal_values_are_no_division_by_zero() -> None:
    found = ask(arm([1000.0] * 3), arm([1000.0] * 3))
    assert (found.verdict, found.points[0].ci_low, found.points[0].ci_high) == ("no_worse", 1.0, 1.0)
    assert ask(arm([1000.0] * 3), arm([1120.0] * 3)).verdict == "improves"


VALUES = st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=6)


@settings(max_examples=150, deadline=None)
@given(VALUES, VALUES, st.booleans(), st.sampled_from(["output_throughput", "median_ttft_ms", "p99_tpot_ms"]))
def test_any_runs_get_a_word_and_the_interval_holds_the_ratio(
    a: list[float], b: list[float], interleaved: bool, metric: str
) -> None:
    question = Question(metric=metric, interleaved=interleaved)
    left = [run(v, median_ttft=v, p99_tpot=v, order=i) for i, v in enumerate(a)]
    right = [run(v, median_ttft=v, p99_tpot=v, order=i) for i, v in enumerate(b)]
    found = judge(left, right, question)
    for point in found.points:
        assert math.isfinite(point.ratio)
        if point.ci_low is not None and point.ci_high is not None:
            assert point.ci_low <= point.ratio * (1 + 1e-12)
            assert point.ratio * (1 - 1e-12) <= point.ci_high
        if min(point.n_a, point.n_b) < 3:
            assert point.klass in {"observed", "weak", "invalid"}
    assert found.good == (found.verdict in {"improves", "no_worse"})


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(900, 1100), min_size=3, max_size=6), st.data())
def test_swapping_the_arms_turns_the_ratio_round(a: list[float], source: st.DataObject) -> None:
    b = [source.draw(st.floats(900, 1100)) for _ in a]
    there, back = ask(arm(a), arm(b)), ask(arm(b), arm(a))
    for one, other in zip(there.points, back.points, strict=True):
        assert one.ratio * other.ratio == pytest.approx(1)
        assert (one.klass == "improves") <= (other.klass == "regresses")
