"""Broken comparisons: each is named with its load and both values, and no statistic is computed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bot.messages import strict
from policies.abtest.judge import Question, judge
from policies.abtest.judgement import Judgement
from policies.abtest.prefix_cache import CacheError, CacheUse, read_cache_use
from policies.bench.run import Identity, Load, Run
from policies.finding import Finding
from tests.policies.runs import KNOWN, arm, ask, codes, run

A = [1000.0, 1010.0, 995.0]
B = [1130.0, 1125.0, 1140.0]


def changed(values: list[float], change: Callable[[Run], Run]) -> list[Run]:
    return [change(r) for r in arm(values)]


def with_identity(**new: object) -> Callable[[Run], Run]:
    return lambda r: r.model_copy(update={"identity": r.identity.model_copy(update=new)})


def with_load(**new: object) -> Callable[[Run], Run]:
    return lambda r: r.model_copy(update={"load": r.load.model_copy(update=new)})


def of(**new: object) -> Callable[[Run], Run]:
    return lambda r: r.model_copy(update=new)


def finding(found: Judgement, code: str) -> Finding:
    return next(f for f in found.problems if f.code == f"abtest.{code}")


def sentences(found: Judgement) -> list[str]:
    return [str(strict(f)) for f in found.problems]


REFUSED = [
    (
        "format",
        of(format="vllm-bench-serve"),
        {"a": "sglang-bench-serving", "b": "vllm-bench-serve"},
    ),
    ("model", with_identity(model="n"), {"a": "m", "b": "n"}),
    ("version", with_identity(server_version="0.5.24"), {"a": "0.5.23", "b": "0.5.24"}),
    ("flags", with_identity(args={"tp_size": "4", "new": "1"}), {"flags": "new not set / 1; tp_size 8 / 4"}),
    ("load-differs", with_load(input_len=2048), {"point": "C64", "field": "input_len", "a": "not told", "b": "2048"}),
    ("load-differs", with_load(num_prompts=50), {"point": "C64", "field": "num_prompts", "a": "not told", "b": "50"}),
    ("load-differs", with_load(dataset="sharegpt"), {"point": "C64", "field": "dataset", "a": "random", "b": "sharegpt"}),  # noqa: E501 - a row
    ("no-common-load", with_load(concurrency=32), {"a": "C64", "b": "C32"}),
    ("failed", of(failed=30), {"point": "C64", "a": "0.0", "b": "2.9"}),
    ("completed", of(failed=None, completed=940), {"point": "C64", "a": "1000", "b": "940"}),
    ("output-tokens", of(output_tokens_per_request=117.2), {"point": "C64", "a": 128.0, "b": 117.2, "percent": "-8.4"}),
    ("input-tokens", of(input_tokens_per_request=900.0), {"point": "C64", "a": 1024.0, "b": 900.0, "percent": "-12.1"}),
]  # fmt: skip


@pytest.mark.parametrize(("code", "change", "values"), REFUSED, ids=[f"{i}-{row[0]}" for i, row in enumerate(REFUSED)])
def test_a_broken_comparison_is_invalid_and_names_both_values(
    code: str, change: Callable[[Run], Run], values: dict[str, object]
) -> None:
    found = ask(arm(A), changed(B, change))
    assert found.verdict == "invalid"
    assert finding(found, code).effect == "refuse"
    assert finding(found, code).values == values
    assert found.problems[0].effect == "refuse"
    for point in found.points:
        assert (point.klass, point.ci_low, point.ci_high, point.bound) == ("invalid", None, None, None)
    assert sentences(found)


def test_the_same_change_in_both_arms_is_fine() -> None:
    for code, change, _ in REFUSED:
        if code not in {"failed", "completed"}:
            assert ask(changed(A, change), changed(B, change)).verdict == "improves", code


WEAK = [
    ("short-run", of(duration_s=41.7), {"point": "C64", "arm": "B", "took_s": 41.7, "least_s": 60.0}),
    ("few-requests", of(completed=300, failed=0), {"point": "C64", "arm": "B", "completed": 300, "least": 320}),
]


@pytest.mark.parametrize(("code", "change", "values"), WEAK)
def test_too_small_a_run_is_weak_at_most(code: str, change: Callable[[Run], Run], values: dict[str, object]) -> None:
    found = ask(arm(A), changed(B, change))
    assert (found.verdict, finding(found, code).values) == ("weak", values)
    assert found.points[0].ci_low is not None


def test_what_is_not_known_is_told_and_is_no_refusal() -> None:
    nothing = of(identity=Identity(), failed=None)
    found = ask(changed(A, nothing), changed(B, nothing))
    assert found.verdict == "improves"
    assert codes(found) == {"model-unknown", "version-unknown", "errors-unknown", "cache-unknown"}
    assert "server version unknown for A and B: that the builds are the same is not shown" in sentences(found)


def test_failures_of_the_same_share_are_told() -> None:
    found = ask(changed(A, of(failed=10)), changed(B, of(failed=10)))
    assert (found.verdict, "failed-both" in codes(found, "note")) == ("improves", True)


def test_a_run_in_both_arms_or_twice_in_one_is_refused() -> None:
    stamped = changed(A, of(sha256="aa"))
    assert finding(ask(stamped, stamped), "same-run").values["where"] == "in both arms"
    twice = [*stamped, stamped[0]]
    assert finding(ask(twice, changed(B, of(sha256="bb"))), "same-run").values["where"] == "twice in A"


def test_arms_that_a_file_tells_apart_are_not_mixed() -> None:
    mixed = [r.model_copy(update={"arm": name}) for r, name in zip(arm(A), ("none", "deepep", "none"), strict=True)]
    assert finding(ask(mixed, arm(B)), "mixed-arms").values == {"arm": "A", "named": "deepep, none"}


def test_a_load_of_one_arm_alone_is_told_and_the_others_are_judged() -> None:
    found = ask([*arm(A), *arm(A, concurrency=128)], arm(B))
    assert found.verdict == "improves"
    assert finding(found, "one-arm-only").values == {"arm": "A", "points": "C128"}


def test_days_between_the_arms_are_told() -> None:
    a = changed(A, with_identity(date="20250914-015043"))
    b = changed(B, with_identity(date="20250922-025354"))
    assert finding(ask(a, b), "days-apart").values == {"days": 8}
    assert "days-apart" not in codes(ask(a, changed(B, with_identity(date="2025-09-14T03:00:00"))))
    assert "days-apart" not in codes(ask(a, changed(B, with_identity(date="99999999-999999"))))


def test_one_cold_arm_is_invalid() -> None:
    cold = [run(1000.0, mean_ttft=3610.0, median_ttft=1000.0)]
    warm = [run(1168.0, mean_ttft=1065.0, median_ttft=1000.0)]
    found = ask(cold, warm)
    assert finding(found, "not-warm").values == {"point": "C64", "a": 3.61, "b": 1.06}
    assert found.verdict == "invalid"
    assert ask(cold, cold).verdict == "observed"


def test_a_skew_that_every_repeat_shows_makes_weak() -> None:
    skewed = [run(v, mean_ttft=240.0, order=i) for i, v in enumerate(A)]
    assert ask(skewed, arm(B)).verdict == "weak"


@pytest.mark.parametrize(
    ("tag", "other", "refused"),
    [
        ("first run after restart", "third run after restart", True),
        ("A; 2nd run since start", "B; 1st run after a restart", True),
        ("second run after restart", "third run after restart", False),
        ("first run after restart", "first run after restart", False),
        ("first run", "third run", False),
    ],
)
def test_the_first_run_after_a_start_is_not_compared_with_a_later_one(tag: str, other: str, refused: bool) -> None:
    a = [run(1000.0, identity=KNOWN.model_copy(update={"tag": tag}))]
    b = [run(1100.0, identity=KNOWN.model_copy(update={"tag": other}))]
    assert ("not-warm-order" in codes(ask(a, b), "refuse")) is refused


def test_the_first_run_of_each_arm_is_left_out_when_one_of_them_was_cold() -> None:
    found = ask(arm([800.0, *A]), arm([1130.0, *B]))
    (point,) = found.points
    assert (found.verdict, point.n_a, point.n_b) == ("improves", 3, 3)
    assert finding(found, "first-run").values == {"point": "C64", "arm": "A", "word": "climbed", "percent": "25.0"}
    assert finding(found, "left-out").values == {"point": "C64", "n": 3}


def test_no_first_run_is_left_out_of_arms_that_were_warm() -> None:
    found = ask(arm(A), arm(B))
    assert (found.points[0].n_a, "left-out" in codes(found)) == (3, False)


def test_a_slow_first_run_that_other_runs_are_as_slow_as_stays() -> None:
    found = ask(arm([900.0, 1010.0, 905.0]), arm(B))
    assert found.points[0].n_a == 3


def test_a_saturated_arm_says_so_and_its_latency_is_not_judged() -> None:
    load = Load(request_rate=10.0, dataset="random")
    a = [run(v, load=load, order=i) for i, v in enumerate(A)]  # 7.8 of 10 req/s
    b = [run(v, load=load, order=i) for i, v in enumerate(B)]
    throughput = ask(a, b)
    assert throughput.verdict == "improves"
    assert finding(throughput, "saturated").effect == "note"
    latency = ask(a, b, Question(metric="median_ttft_ms"))
    assert latency.verdict == "invalid"
    assert finding(latency, "saturated").values["reached"] == "7.826"


CACHE = """# before arm A
vllm:prefix_cache_queries_total{{engine="0",model_name="m"}} 1.0e+06
vllm:prefix_cache_hits_total{{engine="0",model_name="m"}} 1200
# after arm A, before arm B
vllm:prefix_cache_queries_total{{engine="0",model_name="m"}} 1.65536e+06
vllm:prefix_cache_hits_total{{engine="0",model_name="m"}} {between}
# after arm B
vllm:prefix_cache_queries_total{{engine="0",model_name="m"}} 2.31072e+06
vllm:prefix_cache_hits_total{{engine="0",model_name="m"}} {after}
"""


def test_counters_around_the_arms_give_the_hit_rate_of_each() -> None:
    use = read_cache_use(CACHE.format(between=1200, after=652480), "m.txt")
    assert (use.looked_up_a, use.looked_up_b, use.rate_a) == (655360, 655360, 0.0)
    assert use.rate_b == pytest.approx(0.9938, abs=1e-4)


def test_several_engines_are_summed_and_sglang_has_other_names() -> None:
    lines = [
        f'sglang:{name}{{engine="{engine}"}} {value}'
        for step in range(3)
        for engine in range(2)
        for name, value in (("prompt_tokens_total", step * 1000), ("cached_tokens_total", step * 100 * engine))
    ]
    use = read_cache_use("\n".join(lines), "m.txt")
    assert use == CacheUse(looked_up_a=2000, found_a=100, looked_up_b=2000, found_b=100)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no counters of a prefix cache"),
        ("up 1\n", "no counters of a prefix cache"),
        (CACHE.format(between=1200, after=1200).partition("# after arm B")[0], "stands 2 times, expected 3"),
        (CACHE.format(between=1000, after=1200), "fell, the server was restarted"),
    ],
)
def test_scrapes_that_do_not_tell_are_refused(text: str, message: str) -> None:
    with pytest.raises(CacheError, match=message):
        read_cache_use(text, "m.txt")


def use_of(rate_a: float, rate_b: float) -> CacheUse:
    return CacheUse(looked_up_a=1000, found_a=1000 * rate_a, looked_up_b=1000, found_b=1000 * rate_b)


@pytest.mark.parametrize(
    ("rate_a", "rate_b", "dataset", "refused"),
    [
        (0.0, 0.0, "random", False),
        (0.005, 0.004, "random", False),
        (0.0, 0.02, "random", True),
        (0.02, 0.02, "random", True),
        (0.6, 0.6, "sharegpt", False),
        (0.6, 0.7, "sharegpt", True),
        (0.0, 0.5, None, True),
    ],
)
def test_a_cache_that_helped_one_arm_or_random_prompts_is_refused(
    rate_a: float, rate_b: float, dataset: str | None, refused: bool
) -> None:
    change = with_load(dataset=dataset)
    question = Question(interleaved=True, cache=use_of(rate_a, rate_b))
    found = judge(changed(A, change), changed(B, change), question)
    assert ("cache-hit" in codes(found, "refuse")) is refused
    assert found.verdict == ("invalid" if refused else "improves")
    assert not {"cache-unknown", "cache-suspected", "cache-replayed"} & codes(found)


def test_a_seed_that_every_run_repeats_makes_weak_without_counters() -> None:
    change = with_identity(seed=0)
    found = ask(changed(A, change), changed(B, change))
    assert (found.verdict, finding(found, "cache-replayed").values["seed"]) == ("weak", 0)
    known = judge(changed(A, change), changed(B, change), Question(interleaved=True, cache=use_of(0, 0)))
    assert known.verdict == "improves"


def test_an_effect_as_large_as_that_of_a_cache_makes_weak_without_counters() -> None:
    found = ask(arm(A), arm([v * 2.3 for v in A]))
    assert (found.verdict, finding(found, "cache-suspected").values["times"]) == ("weak", 2.3)
    first_tokens = [run(v, median_ttft=10.0, mean_ttft=11.0, order=i) for i, v in enumerate(B)]
    assert finding(ask(arm(A), first_tokens), "cache-suspected").values["metric"] == "median_ttft_ms"


def test_what_is_the_same_at_several_loads_is_said_once() -> None:
    found = ask([*arm(A), *arm(A, concurrency=32)], [*arm(B), *arm(B, concurrency=32)])
    unknown = [f for f in found.problems if f.code == "abtest.cache-unknown"]
    assert [f.values for f in unknown] == [{"point": "C32, C64"}]


def test_every_finding_has_its_sentence() -> None:
    for _, change, _ in [*REFUSED, *WEAK]:
        assert all(sentences(ask(arm(A), changed(B, change))))
