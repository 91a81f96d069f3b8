"""Published result files read to the values that stand in them; one expectation a file in tests/golden/bench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policies.bench import READERS
from policies.bench.reading import read_runs
from policies.bench.run import Reading
from tests.shared import ROOT, shared

GOLDEN = sorted((ROOT / "tests" / "golden" / "bench").glob("*.json"))


def reading(name: str) -> Reading:
    return read_runs((shared("bench-results") / name).read_bytes(), name)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: p.stem)
def test_a_published_file_reads_to_its_values(path: Path) -> None:
    expected = json.loads(path.read_text())
    found = reading(expected["file"])
    assert found.problems == ()
    assert len(found.runs) == len(expected["runs"])
    for run, wanted in zip(found.runs, expected["runs"], strict=True):
        assert run.format == wanted["format"]
        assert {key: getattr(run.load, key) for key in wanted["load"]} == wanted["load"]
        assert (run.completed, run.failed) == (wanted["completed"], wanted["failed"])
        for name, quantity in wanted["metrics"].items():
            assert run.metrics[name].unit == quantity["unit"], name
            assert run.metrics[name].value == pytest.approx(quantity["value"], rel=1e-12), name


def test_every_published_file_has_an_expectation() -> None:
    files = {p.name for p in shared("bench-results").iterdir() if p.suffix != ".md"}
    assert files == {json.loads(path.read_text())["file"] for path in GOLDEN}


def test_the_readme_beside_them_is_left_alone_and_no_problem() -> None:
    found = reading("README.md")
    assert found.skipped == "text for people, no result file"
    assert (found.runs, found.problems) == ((), ())


def test_runs_are_known_by_content_whatever_the_file_is_called() -> None:
    for path in GOLDEN:
        expected = json.loads(path.read_text())
        data = (shared("bench-results") / expected["file"]).read_bytes()
        assert [r.format for r in read_runs(data, "x.txt").runs] == [r["format"] for r in expected["runs"]]


def test_rates_that_occur_twice_are_different_loads() -> None:
    runs = reading("sglang-bench_serving_llama3.3-70b_h200_online.jsonl").runs
    assert [run.load.request_rate for run in runs] == [1.0, 2.0, 4.0, 8.0, 16.0, 4.0, 8.0]
    assert len({run.load for run in runs}) == 7
    assert [run.order for run in runs] == list(range(7))
    assert [run.line for run in runs] == list(range(1, 8))
    assert all(run.load.concurrency is None for run in runs)
    assert {run.load.label for run in runs} == {"1 req/s", "2 req/s", "4 req/s", "8 req/s", "16 req/s"}


def test_the_lengths_of_random_are_not_those_of_sharegpt() -> None:
    runs = reading("sglang-bench_serving_llama3.3-70b_h200_online.jsonl").runs
    assert [run.load.input_len for run in runs if run.load.dataset == "sharegpt"] == [None, None]
    assert runs[0].load.range_ratio == 0.0


def test_errors_are_unknown_derived_or_told() -> None:
    sglang = reading("sglang-bench_serving_llama3.3-70b_h200_online.jsonl").runs[0]
    assert sglang.failed is None
    assert "errors unknown: the file has no count of failed requests" in sglang.warnings
    old = reading("vllm-bench_sglang-pd_1p3d_conc64_in2048_out2048.json").runs[0]
    assert (old.failed, old.warnings) == (0, ("failed derived: 500 prompts - 500 completed",))
    guidellm = reading("guidellm_report_v2.json").runs[0]
    assert (guidellm.failed, guidellm.warnings) == (0, ())


def test_seconds_become_milliseconds_by_format_and_not_by_size() -> None:
    run = reading("inferencex_vllm_glm5-fp8_tp8_isl1024_osl128_conc16.json").runs[0]
    assert round(run.metrics["median_tpot_ms"].value, 1) == 33.6


def test_a_saturated_stage_says_so() -> None:
    run = reading("inference-perf_vllm-batch_size_stage_4_lifecycle_metrics.json").runs[0]
    assert any("saturated: 117.04 of 148.89 requested req/s" in warning for warning in run.warnings)


def test_the_summary_keeps_repeats_in_order_and_arms_apart() -> None:
    runs = reading("sglang_moe-tp-vs-deepep_in8192_3runs.json").runs
    assert [run.arm for run in runs] == ["deepep"] * 3 + ["none"] * 3
    none = [run.metrics["output_throughput"].value for run in runs if run.arm == "none"]
    assert none == sorted(none)
    assert none[0] == pytest.approx(
        reading("sglang_moe-tp_none_r1_in8192_raw.json").runs[0].metrics["output_throughput"].value
    )
    assert [run.line for run in runs] == [10, 11, 12, 48, 49, 50]


def test_what_is_known_of_the_server_is_kept() -> None:
    run = reading("vllm-bench_sglang-pd_1p3d_conc64_in2048_out2048.json").runs[0]
    assert (run.identity.model, run.identity.date) == ("openai/gpt-oss-120b", "20250914-014850")
    assert (run.identity.server_version, run.identity.args_sha256) == (None, None)


def test_no_private_word_of_a_report_is_kept() -> None:
    found = reading("guidellm_report_v2.json")
    told = found.model_dump_json()
    for word in ("127.0.0.1", "http://", "/home/", "hostname", "api_key"):
        assert word not in told, word


def test_no_two_readers_fit_one_document() -> None:
    from policies.bench.source import Source, documents
    from policies.bench.table import table

    for path in GOLDEN:
        text = (shared("bench-results") / json.loads(path.read_text())["file"]).read_text()
        sources: list[Any] = [table(text, "f")] if table(text, "f") else list(documents(text))
        for source in sources:
            assert isinstance(source, Source) or source.rows
            assert sum(reader.fits(source) for reader in READERS) == 1, path.name
