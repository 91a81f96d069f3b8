"""`clawback evidence read`: files, exit codes, and the one document that programs rely on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bot.cli import main
from tests.house.test_imports import HEAVY, loaded_by
from tests.policies.test_bench_rules import SGLANG, VLLM
from tests.shared import shared

RUN_KEYS = {"format", "load", "metrics", "completed", "failed", "warnings"}
LOAD_KEYS = {"concurrency", "request_rate", "input_len", "output_len", "dataset"}


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["evidence", "read", *map(str, arguments)])


def write(folder: Path, name: str, *documents: object) -> Path:
    file = folder / name
    file.write_text("\n".join(json.dumps(d) for d in documents) + "\n")
    return file


def test_every_published_file_and_the_readme_beside_them_is_exit_0() -> None:
    files = sorted(shared("bench-results").iterdir())
    result = run(*files, "--json")
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert set(answer) == {"runs"}
    assert len(answer["runs"]) == 26
    for found in answer["runs"]:
        assert set(found) == RUN_KEYS
        assert set(found["load"]) == LOAD_KEYS
        assert all(set(quantity) == {"value", "unit"} for quantity in found["metrics"].values())
    assert result.stderr == f"skipped: {shared('bench-results') / 'README.md'}: text for people, no result file\n"


def test_no_bare_infinity_or_nan_is_written(tmp_path: Path) -> None:
    file = tmp_path / "f.json"
    file.write_text(json.dumps(SGLANG | {"request_rate": float("inf"), "mean_tpot_ms": float("nan")}))
    result = run(file, "--json")
    assert result.exit_code == 0
    answer = json.loads(result.stdout, parse_constant=pytest.fail)
    assert answer["runs"][0]["load"]["request_rate"] == "inf"


def test_a_person_sees_units_counts_and_notes(tmp_path: Path) -> None:
    file = write(tmp_path, "f.jsonl", SGLANG)
    result = run(file)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"{file}:1: C64, random 1024/128 tok (sglang-bench-serving)",
        "  output_throughput 640 tok/s · request_throughput 5 req/s · median_ttft_ms 80 ms",
        "  500 completed, failed unknown, 100.0 s",
        "  note: errors unknown: the file has no count of failed requests",
    ]


def test_a_place_that_is_wrong_is_exit_1_and_the_rest_is_read(tmp_path: Path) -> None:
    file = write(tmp_path, "f.jsonl", SGLANG, SGLANG | {"output_throughput": "fast"})
    result = run(file, "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert len(answer["runs"]) == 1
    message = '`output_throughput` is "fast", expected a number'
    assert answer["problems"] == [{"file": str(file), "line": 2, "message": message}]
    assert result.stderr == f"{file}:2: {message}\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"backend": "sglang", "dataset_name"', ":1: the text ends inside a result"),
        (b"garbage", ":1: no result in the text, expected inferencex, vllm-bench-serve"),
        (b'{"a": 1}', ":1: no known result format"),
        (b"\xff\xfe\x00", ":1: byte 0xff is not utf-8"),
        (b"", ":1: the file is empty"),
    ],
)
def test_what_is_no_result_is_exit_2_in_plain_words(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "f.json"
    file.write_bytes(content)
    result = run(file, "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["runs"] == []
    assert result.stderr.startswith(f"{file}{message}")
    assert "Traceback" not in result.output


def test_a_file_that_is_not_there_or_a_folder_is_exit_2_and_the_others_are_read(tmp_path: Path) -> None:
    good = write(tmp_path, "f.json", VLLM)
    result = run(good, tmp_path / "none.json", tmp_path, "--json")
    assert result.exit_code == 2
    assert len(json.loads(result.stdout)["runs"]) == 1
    assert result.stderr.splitlines() == [
        f"{tmp_path / 'none.json'}:1: the file cannot be read (no such file or directory)",
        f"{tmp_path}:1: the file cannot be read (is a directory)",
    ]


def test_text_for_people_alone_is_exit_1(tmp_path: Path) -> None:
    file = tmp_path / "README.md"
    file.write_text("# Results\n\nSee the other folder.\n")
    result = run(file)
    assert result.exit_code == 1
    assert result.stderr == f"skipped: {file}: text for people, no result file\nno result among the files\n"


def test_a_huge_file_is_refused_without_reading_it_all(tmp_path: Path) -> None:
    file = tmp_path / "huge.json"
    with file.open("wb") as sink:
        sink.truncate(1024 * 1024 * 1024)
    result = run(file)
    assert result.exit_code == 2
    assert "larger than 8 MiB" in result.stderr


def test_no_file_is_a_usage_error() -> None:
    assert run().exit_code == 2


def test_reading_and_judging_import_no_vendor(tmp_path: Path) -> None:
    file = str(write(tmp_path, "f.json", VLLM))
    for arguments in (("evidence", "read", file), ("evidence", "judge", "--a", file, "--b", file)):
        _, modules = loaded_by(*arguments)
        assert {name.partition(".")[0] for name in modules}.isdisjoint(HEAVY)
        assert not any(name.startswith("workers.") for name in modules)


def test_the_installed_script_reads_a_file(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("clawback")
    file = write(tmp_path, "f.json", VLLM)
    done = subprocess.run([script, "evidence", "read", file, "--json"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["runs"][0]["failed"] == 2
