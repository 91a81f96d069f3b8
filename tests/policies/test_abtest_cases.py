"""Two incidents that were published, and a published pair of runs, judged as an honest reader would."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from bot.messages import strict
from policies.abtest.judge import Question, judge
from policies.abtest.judgement import Judgement
from policies.abtest.prefix_cache import read_cache_use
from policies.bench.reading import read_runs
from policies.bench.run import Run
from tests.shared import shared

BLOCK = re.compile(r"^```\w+ (?P<name>\S+)\n(?P<text>.*?)^```", re.MULTILINE | re.DOTALL)


def blocks() -> dict[str, str]:
    text = (shared("cases") / "README.md").read_text()
    return {found["name"]: found["text"] for found in BLOCK.finditer(text)}


def read(text: str, file: str) -> list[Run]:
    found = read_runs(text.encode(), file)
    assert found.problems == ()
    return list(found.runs)


def again(text: str, tok_s: float, tag: str) -> str:
    """A later, warm run of the same arm."""
    document = json.loads(text)
    duration = document["total_output_tokens"] / tok_s
    document |= {"output_throughput": tok_s, "duration": duration, "request_throughput": 500 / duration, "tag": tag}
    document |= {"mean_ttft_ms": 640.0, "median_ttft_ms": 601.0}
    return json.dumps(document)


def told(found: Judgement) -> str:
    return "\n".join(str(strict(finding)) for finding in found.problems)


def cold_and_warm() -> tuple[str, str]:
    texts = blocks()
    return texts["bench-a1.json"], texts["bench-b1.json"]


def test_a_cold_baseline_against_a_warm_candidate_is_invalid() -> None:
    a, b = cold_and_warm()
    found = judge(read(a, "bench-a1.json"), read(b, "bench-b1.json"), Question())
    assert found.verdict == "invalid"
    (point,) = found.points
    assert round((point.ratio - 1) * 100, 1) == 16.8
    assert (point.load.label, point.n_a, point.n_b, point.ci_low, point.ci_high) == ("C64", 1, 1, None, None)
    said = told(found)
    assert "n=1 per arm, no interval" in said
    assert "A is run 1 after its restart, B is run 3" in said
    assert "3.61 x its median in A, 1.06 x in B" in said
    assert "repeat interleaved, after a warm-up that is thrown away" in said


def test_with_two_warm_runs_each_the_claim_is_gone_and_still_refused() -> None:
    a, b = cold_and_warm()
    left = [*read(a, "a1"), *read(again(a, 3598, "A run 2"), "a2"), *read(again(a, 3611, "A run 3"), "a3")]
    right = [*read(b, "b1"), *read(again(b, 3605, "B run 2"), "b2"), *read(again(b, 3602, "B run 3"), "b3")]
    found = judge(left, right, Question(interleaved=True))
    (point,) = found.points
    assert (found.verdict, found.good, point.klass, point.n_a, point.n_b) == ("weak", False, "weak", 2, 2)
    assert (point.runs_a, point.runs_b) == ((3598.0, 3611.0), (3605.0, 3602.0))
    assert (point.left_out_a, point.left_out_b) == (3086.0, 3605.0)
    assert point.ci_low is not None
    assert point.ci_high is not None
    assert point.bound is not None
    assert round((point.ratio - 1) * 100, 2) == -0.03
    assert [round((limit - 1) * 100, 1) for limit in (point.ci_low, point.ci_high)] == [-2.8, 2.8]
    assert round((point.bound - 1) * 100, 1) == -1.4
    said = told(found)
    assert "arm A climbed 16.6 % from run 1 to run 2" in said
    assert "the first run of each arm is left out by rule" in said
    assert "n=2 per arm is weak" in said


def test_the_order_of_the_rule_is_not_the_choice_of_the_asker() -> None:
    """The candidate brings warm runs alone: it loses its first run all the same."""
    a, b = cold_and_warm()
    left = [*read(a, "a1"), *read(again(a, 3598, "A run 2"), "a2"), *read(again(a, 3611, "A run 3"), "a3")]
    right = [*read(again(b, 3605, "B run 2"), "b2"), *read(again(b, 3602, "B run 3"), "b3")]
    (point,) = judge(left, right, Question()).points
    assert (point.n_a, point.n_b) == (2, 1)


def swept(tok_s: float, number: int) -> str:
    factor = (0.9975, 1.0, 1.0025)[number]
    value = tok_s * factor
    document = {
        "backend": "vllm",
        "dataset_name": "random",
        "seed": 0,
        "random_input_len": 1024,
        "random_output_len": 128,
        "random_range_ratio": 1.0,
        "request_rate": "inf",
        "max_concurrency": 64,
        "num_prompts": 640,
        "completed": 640,
        "duration": 640 * 128 / value,
        "total_input_tokens": 655360,
        "total_output_tokens": 640 * 128,
        "output_throughput": value,
    }
    return json.dumps(document)


def replayed() -> tuple[list[Run], list[Run]]:
    a = [run for i in range(3) for run in read(swept(5120, i), f"a{i}")]
    b = [run for i in range(3) for run in read(swept(11878, i), f"b{i}")]
    return a, b


def test_a_sweep_that_measured_the_prefix_cache_is_invalid_with_both_hit_rates() -> None:
    use = read_cache_use(blocks()["metrics-around-runs.txt"], "metrics-around-runs.txt")
    a, b = replayed()
    for interleaved in (False, True):
        found = judge(a, b, Question(interleaved=interleaved, cache=use))
        assert found.verdict == "invalid"
        assert [p.klass for p in found.points] == ["invalid"]
        assert all(p.ci_low is None for p in found.points)
        said = told(found)
        assert "hit rate A 0.0 % of 655,360, B 99.4 % of 655,360 looked-up tokens" in said
        assert "a small spread of the repeats does not help" in said


def test_without_the_counters_it_is_weak_and_never_silently_valid() -> None:
    a, b = replayed()
    found = judge(a, b, Question(interleaved=True))
    assert (found.verdict, found.good) == ("weak", False)
    assert "prefix cache state unknown" in told(found)
    # the seed unknown too: the effect itself is suspect
    unknown = [
        [r.model_copy(update={"identity": r.identity.model_copy(update={"seed": None})}) for r in x] for x in (a, b)
    ]
    again_weak = judge(unknown[0], unknown[1], Question(interleaved=True))
    assert again_weak.verdict == "weak"
    assert "prefix cache state unknown" in told(again_weak)


def pair(arm: str) -> list[Run]:
    files: list[Path] = sorted(shared("bench-results").glob(f"vllm-bench_sglang-pd_{arm}_*.json"))
    return [run for path in files for run in read(path.read_text(), path.name)]


def test_1p3d_against_2p2d_is_what_an_honest_reader_says() -> None:
    found = judge(pair("2p2d"), pair("1p3d"), Question())
    assert found.verdict == "invalid"
    assert [(p.load.label, round((p.ratio - 1) * 100, 1)) for p in found.points] == [
        ("C32", 3.2), ("C64", 10.6), ("C128", 18.0),
    ]  # fmt: skip
    assert all((p.n_a, p.n_b, p.ci_low, p.ci_high) == (1, 1, None, None) for p in found.points)
    said = told(found)
    assert "n=1 per arm, no interval" in said
    assert "measured 8 days apart" in said
    assert "server version unknown for A and B" in said
    assert "at C32 output tokens per request differ by -2.2 %" in said
    assert "at C64 output tokens per request differ by -8.4 %" in said
    assert "C128 output tokens" not in said


def test_the_trend_of_a_published_arm_is_told() -> None:
    runs = read((shared("bench-results") / "sglang_moe-tp-vs-deepep_in8192_3runs.json").read_text(), "moe")
    found = judge(runs[:3], runs[3:], Question())
    assert not found.good
    assert re.search(r"arm B only rose over its 3 runs, by 9\.6 % beside an effect of \+51\.5 %", told(found))


@pytest.mark.parametrize("metric", ["median_ttft_ms", "p99_tpot_ms", "request_throughput"])
def test_other_metrics_of_the_pair_are_no_more_valid(metric: str) -> None:
    assert judge(pair("2p2d"), pair("1p3d"), Question(metric=metric)).verdict == "invalid"
