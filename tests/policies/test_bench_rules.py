"""The rules of reading result files, each on the smallest input that shows it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from pydantic import JsonValue

from policies.bench.reading import MAX_BYTES, read_runs
from policies.bench.run import Reading, Run

SGLANG: dict[str, JsonValue] = {
    "backend": "sglang",
    "dataset_name": "random",
    "request_rate": 4.0,
    "max_concurrency": 64,
    "random_input_len": 1024,
    "random_output_len": 128,
    "random_range_ratio": 1.0,
    "completed": 500,
    "duration": 100.0,
    "total_input_tokens": 512000,
    "total_output_tokens": 64000,
    "output_throughput": 640.0,
    "request_throughput": 5.0,
    "median_ttft_ms": 80.0,
}
VLLM: dict[str, JsonValue] = {
    "date": "20260101-000000",
    "endpoint_type": "vllm",
    "model_id": "m",
    "tokenizer_id": "m",
    "num_prompts": 500,
    "request_rate": "inf",
    "burstiness": 1.0,
    "max_concurrency": 64,
    "completed": 498,
    "failed": 2,
    "duration": 100.0,
    "total_input_tokens": 512000,
    "total_output_tokens": 64000,
    "output_throughput": 640.0,
    "median_ttft_ms": 80.0,
}
AIPERF: dict[str, JsonValue] = {
    "schema_version": "1.0",
    "aiperf_version": "0.13.0",
    "request_throughput": {"unit": "requests/sec", "avg": 5.0},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 640.0},
    "time_to_first_token": {"unit": "ms", "avg": 90.0, "p50": 80.0, "p99": 200.0, "std": 9.0},
    "request_latency": {"unit": "sec", "avg": 1.5},
    "request_count": {"unit": "requests", "avg": 500.0},
    "error_request_count": {"unit": "requests", "avg": 3.0},
    "output_sequence_length": {"unit": "tokens", "avg": 128.0},
    "benchmark_duration": {"unit": "sec", "avg": 100.0},
    "input_config": {"loadgen": {"concurrency": 16, "request_rate": None}, "endpoint": {"model_names": ["m"]}},
}


def read(*documents: Mapping[str, JsonValue]) -> Reading:
    return read_runs("\n".join(json.dumps(dict(d)) for d in documents).encode(), "f.json")


def only(reading: Reading) -> Run:
    assert reading.problems == ()
    (run,) = reading.runs
    return run


def told(reading: Reading) -> list[str]:
    return [str(problem) for problem in reading.problems]


def test_label_lines_and_blank_lines_between_results_are_left_out_and_told() -> None:
    text = f"# tp8, warm\n{json.dumps(SGLANG)}\n\n[run 2]\n{json.dumps(SGLANG)}\n"
    found = read_runs(text.encode(), "f.jsonl")
    assert found.problems == ()
    assert [run.line for run in found.runs] == [2, 5]
    assert "lines without a result were left out: 1, 4" in found.runs[0].warnings


def test_a_broken_line_is_told_with_its_number_and_the_others_are_read() -> None:
    line = json.dumps(SGLANG)
    found = read_runs(f"{line}\n{line[:-9]}\n{line}\n".encode(), "f.jsonl")
    assert [run.line for run in found.runs] == [1, 3]
    assert [problem.line for problem in found.problems] == [2]
    assert found.problems[0].message.startswith("not JSON: ")


def test_a_file_that_is_cut_off_says_so() -> None:
    found = read_runs(json.dumps(VLLM, indent=1)[:-30].encode(), "f.json")
    assert found.runs == ()
    assert told(found) == ["f.json:15: the text ends inside a result: cut off, or still being written"]


def test_results_after_each_other_in_one_file_are_all_read() -> None:
    text = f"{json.dumps(VLLM, indent=1)}\n{json.dumps(VLLM, indent=1)}\n"
    assert [run.line for run in read_runs(text.encode(), "f.json").runs] == [1, 18]
    listed = read_runs(json.dumps([VLLM, SGLANG], indent=1).encode(), "f.json")
    assert [run.format for run in listed.runs] == ["vllm-bench-serve", "sglang-bench-serving"]
    assert [run.line for run in listed.runs] == [2, 19]


def test_text_after_a_result_on_its_line_is_a_problem() -> None:
    found = read_runs(f"{json.dumps(SGLANG)} ok\n".encode(), "f.json")
    assert told(found) == ["f.json:1: text after a result on its line, expected a new line"]


def test_bare_infinity_is_no_limit_and_is_never_written() -> None:
    text = json.dumps(SGLANG).replace('"request_rate": 4.0', '"request_rate": Infinity')
    run = only(read_runs(text.encode(), "f.json"))
    assert run.load.request_rate == "inf"
    assert "Infinity" not in run.model_dump_json()


def test_no_limit_without_a_concurrency_is_an_open_burst() -> None:
    run = only(read(SGLANG | {"request_rate": "inf", "max_concurrency": None, "num_prompts": 500}))
    assert (run.load.concurrency, run.load.label) == (None, "open burst")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("fast", '`output_throughput` is "fast", expected a number'),
        (None, "`output_throughput` is null, expected a number"),
        (True, "`output_throughput` is true, expected a number"),
        ([640.0], "`output_throughput` is a list of 1, expected a number"),
        (float("nan"), "`output_throughput` is nan, expected a finite number"),
        (float("inf"), "`output_throughput` is inf, expected a finite number"),
        (-640.0, "`output_throughput` is -640, expected 0 or more"),
        (1e300, "`output_throughput` is 1e+300, expected a number that can be measured"),
        ("640.0", '`output_throughput` is "640.0", expected a number'),
    ],
)
def test_what_is_no_number_where_one_is_needed_is_a_problem_with_its_line(value: JsonValue, message: str) -> None:
    found = read_runs(json.dumps(VLLM | {"output_throughput": value}, indent=1).encode(), "f.json")
    assert told(found) == [f"f.json:15: {message}"]
    assert found.runs == ()


def test_a_missing_throughput_is_a_problem() -> None:
    document = {name: value for name, value in VLLM.items() if name != "output_throughput"}
    assert told(read(document)) == ["f.json:1: `output_throughput` is missing, expected a number"]


def test_nan_of_a_latency_is_left_out_with_a_warning() -> None:
    run = only(read_runs(json.dumps(VLLM | {"mean_tpot_ms": float("nan")}, indent=1).encode(), "f.json"))
    assert "mean_tpot_ms" not in run.metrics
    assert "line 17: `mean_tpot_ms` is not a number (NaN): left out" in run.warnings


def test_a_latency_that_is_text_is_a_problem() -> None:
    assert told(read(VLLM | {"median_ttft_ms": "80 ms"})) == [
        'f.json:1: `median_ttft_ms` is "80 ms", expected a number'
    ]


def test_a_key_twice_in_one_object_is_a_problem_at_its_second_line() -> None:
    text = json.dumps(VLLM, indent=1).replace('"failed": 2,', '"failed": 2,\n "output_throughput": 700.0,')
    found = read_runs(text.encode(), "f.json")
    assert told(found) == ["f.json:16: `output_throughput` twice in one object, expected it once"]


def test_failed_is_told_derived_or_unknown() -> None:
    assert only(read(VLLM)).failed == 2
    old = {name: value for name, value in VLLM.items() if name != "failed"}
    run = only(read(old))
    assert (run.failed, run.warnings) == (2, ("failed derived: 500 prompts - 498 completed",))
    assert only(read(SGLANG)).failed is None
    assert only(read(SGLANG | {"errors": ["", "timeout", ""]})).failed == 1
    assert told(read(old | {"completed": 501})) == [
        "f.json:1: 501 requests completed of 500 asked, expected at most as many"
    ]


def test_a_run_that_completed_nothing_is_no_run() -> None:
    assert told(read(VLLM | {"completed": 0})) == ["f.json:1: no request was completed: nothing was measured"]


def test_a_throughput_that_its_own_counts_contradict_is_told() -> None:
    run = only(read(VLLM | {"output_throughput": 900.0}))
    assert "`output_throughput` says 900, its own counts and duration give 640 tok/s" in run.warnings


def test_latencies_in_both_units_are_not_guessed() -> None:
    document = VLLM | {"median_tpot": 0.03}
    assert told(read(document)) == [
        "f.json:1: `median_ttft_ms` stands beside latencies without a unit, expected one unit in a file"
    ]


def test_secrets_and_places_of_the_server_are_stripped() -> None:
    info: dict[str, JsonValue] = {
        "version": "0.5.23",
        "model_path": "/home/ana/models/m",
        "tp_size": 8,
        "disable_cuda_graph": False,
        "api_key": "sk-very-secret",
        "admin_api_key": "secret2",
        "host": "gpu-7.internal",
        "port": 30000,
        "dist_init_addr": "10.1.2.3:5000",
        "launch_command": "python -m sglang.launch_server --api-key secret3",
        "tokenizer_path": "http://gpu-7.internal/t",
        "random_seed": 7,
        "max_total_tokens": 1000,
        "internal_states": [{"last_gen_throughput": 1.0}],
    }
    run = only(read(SGLANG | {"server_info": info, "tag": "warm"}))
    assert run.identity.server_version == "0.5.23"
    assert run.identity.model == "~/models/m"
    assert run.identity.tag == "warm"
    assert run.identity.args == {"disable_cuda_graph": "false", "max_total_tokens": "1000", "tp_size": "8"}
    assert run.identity.args_sha256 is not None
    for word in ("secret", "gpu-7", "10.1.2.3", "ana"):
        assert word not in run.model_dump_json(), word
    other = only(read(SGLANG | {"server_info": info | {"random_seed": 8, "api_key": "x"}}))
    assert other.identity.args_sha256 == run.identity.args_sha256
    changed = only(read(SGLANG | {"server_info": info | {"tp_size": 4}}))
    assert changed.identity.args_sha256 != run.identity.args_sha256


def test_metadata_of_vllm_is_an_argument() -> None:
    run = only(read(VLLM | {"tensor_parallel": "8", "base_url": "http://h:1", "hf_token": "x", "rtfx": 0.0}))
    assert run.identity.args == {"tensor_parallel": "8"}


def test_aiperf_json_reads_with_the_units_that_it_tells() -> None:
    run = only(read(AIPERF))
    assert run.format == "aiperf-json"
    assert (run.load.concurrency, run.completed, run.failed, run.duration_s) == (16, 500, 3, 100.0)
    assert run.metrics["median_ttft_ms"].value == 80.0
    assert run.metrics["mean_e2e_latency_ms"].value == 1500.0
    assert run.output_tokens_per_request == 128.0
    assert (run.identity.tool, run.identity.model) == ("aiperf 0.13.0", "m")


def test_an_aiperf_unit_that_is_not_known_is_not_guessed() -> None:
    document = AIPERF | {"request_latency": {"unit": "ticks", "avg": 1.5}}
    assert told(read(document)) == [
        'f.json:1: the unit of `request_latency` is "ticks", expected ms, us, ns, s, sec',
    ]


def test_a_cancelled_aiperf_run_is_no_run() -> None:
    assert told(read(AIPERF | {"was_cancelled": True})) == [
        "f.json:1: the run was not finished, expected a complete one"
    ]


def test_genai_perf_has_its_load_elsewhere() -> None:
    config: JsonValue = {"perf_analyzer": {"stimulus": {"concurrency": 4}}, "input": {"output_tokens": {"mean": 128}}}
    run = only(read(AIPERF | {"input_config": config}))
    assert (run.load.concurrency, run.load.output_len) == (4, 128)


def csv_rows(*rows: str) -> Reading:
    head = (
        'Metric,avg,min,max,p99,p50\nTime to First Token (ms),90,1,9,200,80\nRequest Latency (ms),"1,146.31",1,9,9,9\n'
    )
    return read_runs((head + "\nMetric,Value\n" + "\n".join(rows) + "\n").encode(), "f.csv")


def test_csv_columns_may_stand_in_any_order_and_thousands_have_commas() -> None:
    run = only(csv_rows('Output Token Throughput (tokens/sec),"1,640.5"', "Request Count,500.00"))
    assert run.metrics["p99_ttft_ms"].value == 200
    assert run.metrics["mean_e2e_latency_ms"].value == 1146.31
    assert run.metrics["output_throughput"].value == 1640.5
    assert run.completed == 500


def test_a_csv_row_with_a_cell_too_many_is_a_problem_with_its_line() -> None:
    assert told(csv_rows("Output Token Throughput (tokens/sec),1,640.5", "Request Count,500.00")) == [
        "f.csv:1: `Output Token Throughput` is missing, expected it in the second table",
        "f.csv:6: `Output Token Throughput (tokens/sec)` has 3 cells, expected 2 as in the first line of its table",
    ]


def test_a_csv_unit_that_is_not_known_is_not_guessed() -> None:
    found = csv_rows("Output Token Throughput (tokens/min),640", "Request Count,500")
    assert told(found) == [
        "f.csv:6: `Output Token Throughput (tokens/min)` has no unit that is known, expected one per second"
    ]


def test_other_tables_of_a_csv_are_left_out_and_told() -> None:
    found = csv_rows(
        "Output Token Throughput (tokens/sec),640",
        "Request Count,500",
        "",
        "Endpoint,GPU,Power",
        "gpu-7.internal,0,300",
    )
    run = only(found)
    assert "1 rows of other tables are not read" in run.warnings
    assert "gpu-7" not in run.model_dump_json()


def test_each_timing_of_hyperfine_is_a_run_and_the_command_is_not_kept() -> None:
    document: JsonValue = {
        "results": [
            {
                "command": "serve --api-key s3cret",
                "times": [1.0, 1.1, 1.2],
                "mean": 1.1,
                "stddev": None,
                "exit_codes": [0, 0, 0],
            },
            {"command": "other", "mean": 2.0, "stddev": None},
        ]
    }
    found = read_runs(json.dumps(document).encode(), "h.json")
    assert [(r.arm, r.metrics["time_s"].value) for r in found.runs] == [
        ("command 1", 1.0), ("command 1", 1.1), ("command 1", 1.2), ("command 2", 2.0),
    ]  # fmt: skip
    assert "s3cret" not in found.model_dump_json()
    assert "single timings were not exported: this is their mean" in found.runs[3].warnings


def test_a_command_that_failed_is_a_problem() -> None:
    document: JsonValue = {"results": [{"command": "x", "times": [1.0], "exit_codes": [1]}]}
    found = read_runs(json.dumps(document, indent=1).encode(), "h.json")
    assert told(found) == ["h.json:9: the command ended with 1, expected 0"]


def test_a_guidellm_report_of_another_version_is_refused() -> None:
    document: JsonValue = {"metadata": {"version": 1, "guidellm_version": "0.3"}, "benchmarks": []}
    assert told(read_runs(json.dumps(document).encode(), "g.json")) == [
        "g.json:1: the report's version is 1, expected 2"
    ]


@pytest.mark.parametrize(
    ("data", "line", "message"),
    [
        (b"", 1, "the file is empty"),
        (b"  \n\n", 1, "the file is empty"),
        (b"{}", 1, "no known result format"),
        (b'{"a": 1}\n', 1, "no known result format"),
        (b"a,b\n1,2\n", 1, "no result in the text"),
        (b"Successful requests: 500\n", 1, "no result in the text"),
        (b'{"a": \n1,\n}', 3, "not JSON"),
        (b"ok\n\xff\n", 2, "byte 0xff is not utf-8"),
        (b"[" * 100000, 1, "nested deeper"),
        (b'{"a": ' + b"9" * 5000 + b"}", 1, "thousands of digits"),
        (b"x" * (MAX_BYTES + 1), 1, "larger than 8 MiB"),
    ],
)
def test_a_file_that_is_no_result_is_refused_in_plain_words(data: bytes, line: int, message: str) -> None:
    found = read_runs(data, "f")
    assert found.runs == ()
    assert found.skipped is None
    assert found.problems[0].line == line
    assert message in found.problems[0].message


@pytest.mark.parametrize(
    "text",
    [
        "# Results\n\nThe files here were measured on two machines.\n",
        "These runs were made with both servers warm and idle.\nEach file holds one run of the sweep.\n",
        "Some cases:\n```json\n" + json.dumps(SGLANG) + "\n```\n",
    ],
)
def test_text_for_people_is_skipped_and_not_read(text: str) -> None:
    found = read_runs(text.encode(), "f")
    assert found.skipped == "text for people, no result file"
    assert (found.runs, found.problems) == ((), ())


def test_a_byte_order_mark_and_windows_line_ends_change_nothing() -> None:
    plain = read(SGLANG, SGLANG)
    odd = read_runs(b"\xef\xbb\xbf" + "\r\n".join([json.dumps(SGLANG)] * 2).encode(), "f.json")
    assert [r.model_dump(exclude={"sha256"}) for r in odd.runs] == [
        r.model_dump(exclude={"sha256"}) for r in plain.runs
    ]


def test_the_list_of_problems_ends() -> None:
    many = read_runs(b'{"a"\n' * 5000, "f")
    assert len(many.problems) <= 51
    assert many.problems[-1].message == "reading stopped here, after 20 broken places"
    wrong = read(*[VLLM | {"output_throughput": "x"}] * 80)
    assert wrong.problems[-1].message == "and 30 more problems"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((json.dumps(SGLANG) + "\n") * 2001, "f:2001: more than 2000 runs, expected the results of one benchmark"),
        ("[" + ",\n".join([json.dumps(SGLANG)] * 2001) + "]", "f:1: more than 2000 runs"),
        ("Metric,a\n" + "x,1\n" * 2000, "f:1: no known result format"),
        (json.dumps({"results": [{"command": "x", "times": [1.0] * 2001}]}), "f:1: 2001 runs, expected at most 2000"),
        (
            json.dumps({"metadata": {"version": 2}, "benchmarks": [{}] * 201}),
            "f:1: 201 runs, expected at most 200 of one benchmark",
        ),
        (
            json.dumps([{"independent_runs": 1, "configurations": {}}] * 201),
            "f:1: 201 runs, expected at most 200 of one benchmark",
        ),
    ],
)
def test_more_runs_than_a_benchmark_has_are_refused_at_once(data: str, message: str) -> None:
    assert str(read_runs(data.encode(), "f").problems[-1]).startswith(message)
