"""`clawback evidence judge`: arms of files, the verdict as exit code, and the document that programs rely on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bot.cli import main
from tests.policies.test_abtest_cases import again, blocks, swept
from tests.policies.test_bench_rules import SGLANG
from tests.shared import shared

A = (1000.0, 1010.0, 995.0, 1004.0)
B = (1129.0, 1140.0, 1121.0, 1131.0)
POINT_KEYS = {"load", "n_a", "n_b", "ratio", "ci_low", "ci_high", "class"}


def judge(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["evidence", "judge", *map(str, arguments)])


def one(value: float, concurrency: int = 64, **more: object) -> str:
    document = SGLANG | {"output_throughput": value, "max_concurrency": concurrency, "completed": 1000}
    document |= {"total_input_tokens": 1024000, "total_output_tokens": 128000, "duration": 128000 / value}
    return json.dumps(document | {"request_throughput": value / 128} | more)


def files(folder: Path, arm: str, values: tuple[float, ...], concurrency: int = 64) -> list[Path]:
    made = []
    for number, value in enumerate(values, start=1):
        file = folder / f"{arm}{number}-c{concurrency}.json"
        file.write_text(one(value, concurrency))
        made.append(file)
    return made


def test_an_improvement_is_exit_0(tmp_path: Path) -> None:
    result = judge("--a", *files(tmp_path, "a", A), "--b", *files(tmp_path, "b", B), "--interleaved", "--json")
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert set(answer) == {"verdict", "points", "problems"}
    assert answer["verdict"] == "improves"
    (point,) = answer["points"]
    assert set(point) == POINT_KEYS
    assert (point["load"]["concurrency"], point["n_a"], point["n_b"], point["class"]) == (64, 4, 4, "improves")
    assert point["ci_low"] < point["ratio"] < point["ci_high"]
    assert all(set(problem) == {"code", "message"} for problem in answer["problems"])


def test_no_worse_is_exit_0_and_a_loss_is_exit_1(tmp_path: Path) -> None:
    a = files(tmp_path, "a", A)
    same = judge("--interleaved", "--a", *a, "--b", *files(tmp_path, "b", tuple(v * 1.001 for v in A)), "--json")
    assert (same.exit_code, json.loads(same.stdout)["verdict"]) == (0, "no_worse")
    loss = judge("--interleaved", "--a", *a, "--b", *files(tmp_path, "c", tuple(v * 0.9 for v in A)), "--json")
    assert (loss.exit_code, json.loads(loss.stdout)["verdict"]) == (1, "regresses")


def test_a_person_sees_the_ratio_with_its_interval_and_n(tmp_path: Path) -> None:
    result = judge("--a", *files(tmp_path, "a", A), "--b", *files(tmp_path, "b", B), "--interleaved")
    lines = result.stdout.splitlines()
    assert lines[0] == "verdict: improves (output_throughput, higher is better, B against A, interleaved)"
    assert lines[1] == (
        "C64: +12.8 % output tok/s (A 1002.2, B 1130.2 tok/s), n=4 per arm, 95 % [+12.6, +13.0] %,"
        " one-sided bound +12.6 %: improves"
    )
    assert all(line.startswith("  note: ") for line in lines[2:])


def test_one_run_per_arm_is_observed_and_exit_1(tmp_path: Path) -> None:
    result = judge("--a", *files(tmp_path, "a", A[:1]), "--b", *files(tmp_path, "b", B[:1]), "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert answer["verdict"] == "observed"
    assert (answer["points"][0]["ci_low"], answer["points"][0]["class"]) == (None, "observed")


def test_one_file_of_lines_is_an_arm(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join(one(v) for v in A))
    (tmp_path / "b.jsonl").write_text("\n".join(one(v) for v in B))
    result = judge("--a", tmp_path / "a.jsonl", "--b", tmp_path / "b.jsonl", "--interleaved")
    assert result.exit_code == 0


def test_another_metric_and_one_load_can_be_asked_for(tmp_path: Path) -> None:
    a = files(tmp_path, "a", A) + files(tmp_path, "a", A, 32)
    b = files(tmp_path, "b", B) + files(tmp_path, "b", tuple(v * 0.9 for v in A), 32)
    both = judge("--a", *a, "--b", *b, "--interleaved", "--json")
    assert json.loads(both.stdout)["verdict"] == "trade_off"
    for name in ("C64", "c64", "64"):
        alone = judge("--a", *a, "--b", *b, "--interleaved", "--load", name, "--json")
        assert (alone.exit_code, len(json.loads(alone.stdout)["points"])) == (0, 1)
    none = judge("--a", *a, "--b", *b, "--load", "C7")
    assert none.exit_code == 2
    assert "no run at load 'C7', expected one of: C64, C32" in none.stderr
    latency = judge("--a", *a, "--b", *b, "--interleaved", "--metric", "median_ttft_ms", "--json")
    assert json.loads(latency.stdout)["points"][0]["ratio"] == 1.0
    wrong = judge("--a", *a, "--b", *b, "--metric", "speed", "--json")
    assert wrong.exit_code == 1
    assert json.loads(wrong.stdout) == {
        "verdict": "invalid",
        "points": [],
        "problems": [
            {
                "code": "abtest.no-direction",
                "message": "`speed` has no better direction, expected a throughput or a latency",
            }
        ],
    }


def test_todays_load_above_what_was_measured_is_outside(tmp_path: Path) -> None:
    arms: list[str | Path] = ["--a", *files(tmp_path, "a", A), "--b", *files(tmp_path, "b", B), "--interleaved"]
    assert judge(*arms, "--today", "64").exit_code == 0
    result = judge(*arms, "--today", "65", "--json")
    assert (result.exit_code, json.loads(result.stdout)["verdict"]) == (1, "outside")


def test_a_place_that_could_not_be_read_makes_invalid(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("\n".join([*(one(v) for v in A), one(1.0)[:-5]]))
    result = judge("--a", tmp_path / "a.jsonl", "--b", *files(tmp_path, "b", B), "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert answer["verdict"] == "invalid"
    assert answer["problems"][0]["code"] == "abtest.unread"
    assert f"{tmp_path / 'a.jsonl'}:5: " in answer["problems"][0]["message"]


@pytest.mark.parametrize("content", ["", "{", "# Read me\n\nWords.\n"])
def test_a_file_without_a_run_is_exit_2(tmp_path: Path, content: str) -> None:
    file = tmp_path / "a.json"
    file.write_text(content)
    result = judge("--a", file, "--b", *files(tmp_path, "b", B), "--json")
    assert result.exit_code == 2
    assert str(file) in json.loads(result.stdout)["error"]["message"]


@pytest.mark.parametrize("arguments", [(), ("--a",), ("--a", "x"), ("--a", "--b", "x"), ("--a", "x", "--b")])
def test_an_arm_without_files_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    result = judge(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("clawback: ")


def test_the_same_file_in_both_arms_is_no_comparison(tmp_path: Path) -> None:
    arm = files(tmp_path, "a", A)
    result = judge("--a", *arm, "--b", *arm, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["problems"][0]["code"] == "abtest.same-run"


def test_arms_that_a_file_names_are_chosen_with_a_hash() -> None:
    file = shared("bench-results") / "sglang_moe-tp-vs-deepep_in8192_3runs.json"
    result = judge("--a", f"{file}#deepep", "--b", f"{file}#none")
    assert result.exit_code == 1
    assert "load not told: +51.5 % output tok/s" in result.stdout
    mixed = judge("--a", file, "--b", f"{file}#none", "--json")
    assert "abtest.mixed-arms" in [p["code"] for p in json.loads(mixed.stdout)["problems"]]
    wrong = judge("--a", f"{file}#fast", "--b", f"{file}#none")
    assert (wrong.exit_code, "arms of the file: deepep, none" in wrong.stderr) == (2, True)


def test_the_case_of_the_cold_baseline_from_the_terminal(tmp_path: Path) -> None:
    texts = blocks()
    a, b = texts["bench-a1.json"], texts["bench-b1.json"]
    (tmp_path / "a1").write_text(a)
    (tmp_path / "b1").write_text(b)
    first = judge("--a", tmp_path / "a1", "--b", tmp_path / "b1")
    assert first.exit_code == 1
    assert "verdict: invalid" in first.stdout
    assert "C64: +16.8 % output tok/s (A 3086, B 3605 tok/s), n=1 per arm, no interval" in first.stdout
    assert "the arms are not equally warm at C64: A is run 1 after its restart, B is run 3" in first.stdout
    for name, text, value in (("a2", a, 3598), ("a3", a, 3611), ("b2", b, 3605), ("b3", b, 3602)):
        (tmp_path / name).write_text(again(text, value, name))
    arms: list[list[str | Path]] = [["--" + arm, *(tmp_path / f"{arm}{i}" for i in (1, 2, 3))] for arm in "ab"]
    second = judge(*arms[0], *arms[1], "--interleaved")
    assert second.exit_code == 1
    assert "verdict: weak" in second.stdout
    assert "C64: -0.03 % output tok/s" in second.stdout
    assert "n=2 per arm, 95 % [-2.8, +2.8] %, one-sided bound -1.4 %: weak" in second.stdout
    assert "arm A climbed 16.6 % from run 1 to run 2" in second.stdout


def test_the_case_of_the_prefix_cache_from_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "scrapes").write_text(blocks()["metrics-around-runs.txt"])
    for arm, tok_s in (("a", 5120.0), ("b", 11878.0)):
        for i in range(3):
            (tmp_path / f"{arm}{i}").write_text(swept(tok_s, i))
    arms: list[list[str | Path]] = [["--" + arm, *(tmp_path / f"{arm}{i}" for i in range(3))] for arm in "ab"]
    known = judge(*arms[0], *arms[1], "--scrapes", tmp_path / "scrapes")
    assert known.exit_code == 1
    assert "verdict: invalid" in known.stdout
    assert "hit rate A 0.0 % of 655,360, B 99.4 % of 655,360 looked-up tokens" in known.stdout
    unknown = judge(*arms[0], *arms[1], "--json")
    answer = json.loads(unknown.stdout)
    assert (unknown.exit_code, answer["verdict"]) == (1, "weak")
    assert any("prefix cache state unknown" in problem["message"] for problem in answer["problems"])
    wrong = judge(*arms[0], *arms[1], "--scrapes", tmp_path / "a0", "--json")
    assert (wrong.exit_code, json.loads(wrong.stdout)["error"]["code"]) == (2, "cache")
