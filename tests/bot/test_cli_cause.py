"""`clawback cause check`: names, expressions, times, real files, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from bot.cli import main
from tests.bot.dumps import AT, EPOCH, EXAMPLE, check, files
from tests.policies.scrapes import engine_text
from tests.shared import shared

TTFT = "histogram_quantile(0.5, sum by (le) (sglang:time_to_first_token_seconds_bucket))"


def failed(*arguments: str) -> str:
    """What the command says when it cannot judge."""
    found = CliRunner().invoke(main, ["cause", "check", *arguments])
    assert found.exit_code == 2, found.output
    return found.stderr


def test_the_document_has_the_fixed_keys_and_each_citation_its_own(tmp_path: Path) -> None:
    found = check("queue_reqs > 0", "--at", files(tmp_path, [engine_text(queued=3)])[0])
    assert {"verdict", "citations", "reason"} <= found.document.keys()
    assert found.document["citations"] == [
        {
            "query": "sum(max by (instance, dp_rank) (sglang:num_queue_reqs))",
            "value": 3.0,
            "unit": "requests",
            "time": EPOCH,
            "source": f"{tmp_path}/scrape0.prom",
            "name": "queue_reqs",
        }
    ]


@pytest.mark.parametrize(
    ("cause", "verdict", "code"),
    [
        (f"{TTFT} > 30", "consistent", 0),  # 8495 of 11008 first tokens are beyond the last bound
        (f"{TTFT} > 60", "unverified", 1),  # how far beyond is not known
        (f"{TTFT} < 30", "refuted", 1),
        ("sglang:num_queue_reqs > 2000 and sglang:num_running_reqs == 162", "consistent", 0),
        ("sglang:num_queue_reqs == 0", "refuted", 1),
        ("sglang:num_requests_running > 0", "unverified", 1),  # there is no such family
        ("state == idle", "refuted", 1),
        ("state == saturated", "unverified", 1),
        ("sglang:num_queue_reqs rising", "unverified", 1),
    ],
)
def test_a_real_scrape_of_a_saturated_server(cause: str, verdict: str, code: int) -> None:
    path = shared("metrics") / "sglang_docs_sample.prom"
    found = check(cause, "--at", f"{path}@{AT}", fleet=None)
    assert (found.document["verdict"], found.code) == (verdict, code)
    assert "cause: not established" in found.text


def test_a_value_beyond_its_histogram_is_written_as_more_than_the_bound() -> None:
    path = shared("metrics") / "sglang_docs_sample.prom"
    found = check(f"{TTFT} > 30", "--at", f"{path}@{AT}", fleet=None)
    assert ">30 at 10:00:00" in found.text
    assert found.document["citations"][0]["beyond"] is True


def test_a_real_dcgm_scrape_holds_no_value_where_it_says_none() -> None:
    path = shared("metrics") / "dcgm-exporter_readme_sample.prom"
    found = check('"DCGM_FI_DEV_MEMORY_TEMP" > 0', "--at", f"{path}@{AT}", fleet=None)
    assert (found.document["verdict"], found.document["citations"]) == ("unverified", [])
    clock = check("DCGM_FI_DEV_SM_CLOCK < 200", "--at", f"{path}@{AT}", fleet=None)
    assert (clock.document["verdict"], clock.readings) == ("consistent", [("DCGM_FI_DEV_SM_CLOCK", 139.0, 0.0)])


def test_a_trend_takes_three_files(tmp_path: Path) -> None:
    texts = [f"queue {value}\nprocess_start_time_seconds {EPOCH - 30}\n" for value in (9, 6, 3)]
    at, *then = files(tmp_path, texts)
    query = '"queue" falling'
    assert check(query, "--at", at, "--then", then[0], fleet=None).document["verdict"] == "unverified"
    three = check(query, "--at", at, "--then", then[0], "--then", then[1], fleet=None)
    assert three.document["verdict"] == "consistent"
    assert [value for _, value, _ in three.readings] == [9, 3]


def test_a_rate_looks_back_to_earlier_files(tmp_path: Path) -> None:
    at, then = files(tmp_path, ["x_total 100\n", "x_total 160\n"])
    found = check("rate(x_total[2m]) > 0", "--at", then, "--baseline", at, fleet=None)
    assert found.document["verdict"] == "consistent"
    assert found.document["citations"][0]["value"] > 0


@pytest.mark.parametrize(
    ("suffix", "expected"),
    [("@1796119200", EPOCH), ("@1796119200.5", EPOCH + 0.5), (f"@{AT}", EPOCH), ("@2026-12-01T10:00:00", EPOCH),
     ("@2026-12-01T11:00:00+01:00", EPOCH), ("@2026-12-01 10:00:00", EPOCH)],
)  # fmt: skip
def test_a_time_is_epoch_or_iso(tmp_path: Path, suffix: str, expected: float) -> None:
    path = tmp_path / "a.prom"
    path.write_text("x 1\n", encoding="utf-8")
    found = check('"x" > 0', "--at", f"{path}{suffix}", fleet=None)
    assert found.document["files"] == [{"file": str(path), "time": expected, "time_is": "as given"}]


def test_without_a_time_that_of_the_lines_counts_else_that_of_the_file_and_it_is_said(tmp_path: Path) -> None:
    stamped, bare = tmp_path / "stamped.prom", tmp_path / "bare@gpu1.prom"
    stamped.write_text(f"x 1 {int(EPOCH * 1000)}\ny 2\n", encoding="utf-8")
    bare.write_text("x 1\n", encoding="utf-8")
    os.utime(bare, (EPOCH + 5, EPOCH + 5))
    found = check('"x" > 0', "--at", str(stamped), "--then", str(bare), fleet=None)
    assert [(one["time"], one["time_is"]) for one in found.document["files"]] == [
        (EPOCH, "of its lines"),
        (EPOCH + 5, "when the file was written"),
    ]
    assert "when the file was written" in found.text


@pytest.mark.parametrize(
    ("cause", "fleet", "said"),
    [
        ("queue_reqs > 0", None, "names of causes and metrics need --fleet FILE"),
        ("cold-start", None, "need --fleet FILE"),
        ("cold strat", EXAMPLE, "causes of this fleet: queued-behind-load, cold-start"),
        ("queue_req > 0", EXAMPLE, "did you mean 'queue_reqs'?"),
        ("queue_reqs >> 0", EXAMPLE, "cannot be read at character 12"),
        ("", EXAMPLE, "found nothing, expected a comparison"),
    ],
)
def test_what_cannot_be_judged_is_refused_with_what_to_write(
    tmp_path: Path, cause: str, fleet: Path | None, said: str
) -> None:
    at = files(tmp_path, [engine_text()])[0]
    given = ["--cause", cause, "--at", at, *(["--fleet", str(fleet)] if fleet else [])]
    assert said in failed(*given)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    good, empty, broken, binary = (tmp_path / name for name in ("good", "empty", "broken", "binary"))
    good.write_text("x 1\n", encoding="utf-8")
    empty.write_text("# nothing\n", encoding="utf-8")
    broken.write_text("x 1\nx{ 2\n", encoding="utf-8")
    binary.write_bytes(b"\xff\xfe\x00")
    cause = ("--cause", '"x" > 0', "--at")
    assert "no such file" in failed(*cause, str(tmp_path / "absent"))
    assert "holds no sample" in failed(*cause, str(empty))
    assert "line 2" in failed(*cause, str(broken))
    assert "not utf-8" in failed(*cause, str(binary))
    assert "is no time, expected epoch seconds or ISO 8601" in failed(*cause, f"{good}@noon")
    assert "is not later than" in failed(*cause, f"{good}@100", "--then", f"{good}@100")
    assert "both hold x" in failed(*cause, f"{good}@100", "--at", f"{good}@101")
    assert "cannot be read" in failed("--fleet", str(tmp_path / "none.yaml"), *cause, str(good))
    assert "--at" in failed("--cause", '"x" > 0')


def test_a_fleet_file_with_errors_is_refused(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(EXAMPLE.read_text(encoding="utf-8").replace("needs: queue_reqs > 0", "needs: queue_req > 0"))
    found = failed("--fleet", str(fleet), "--cause", "cold-start", "--at", files(tmp_path, [engine_text()])[0])
    assert "'queue_req' is not a metric of this fleet" in found


def test_a_real_cold_start_is_verified_against_the_process_that_ran_before(tmp_path: Path) -> None:
    texts, total, count = [], 0.0, 0
    for ttft_s in (29.0, 12.0, 6.0, 3.0, 2.9):
        latency = f"time_to_first_token_seconds_sum {total}\nsglang:time_to_first_token_seconds_count {count}"
        texts.append(engine_text(running=3, started=EPOCH - 60) + f"sglang:{latency}\n")
        total, count = total + 10 * ttft_s, count + 10
    at, *then = files(tmp_path, texts, apart_s=20)
    before = tmp_path / "before.prom"
    before.write_text(engine_text(started=EPOCH - 90_000), encoding="utf-8")
    given = ["--at", at, *(word for one in then for word in ("--then", one)), "--baseline", f"{before}@{EPOCH - 3600}"]
    found = check("cold-start", *given)
    assert (found.code, found.document["verdict"]) == (0, "verified")
    assert "cause: cold-start (cold start after a restart); measured" in found.text
    assert [value for name, value, _ in found.readings if name == "uptime_s"] == [60, 140, 86400]
    busy = files(tmp_path, [text.replace('tp_rank="0"} 0\n', 'tp_rank="0"} 2\n') for text in texts], apart_s=20)
    rival = check("cold-start", "--at", busy[0], *(w for one in busy[1:] for w in ("--then", one)), *given[-2:])
    assert (rival.document["verdict"], rival.document["code"]) == ("consistent", "claim.rivals-hold")
