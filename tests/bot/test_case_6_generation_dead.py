"""Case 6: health 200 and no tokens. Two scrapes say `hung`, one does not; `cold start` is refused with its readings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.bot.dumps import EPOCH, Answer, case_text, check, files
from tests.policies.scrapes import engine_text, router_text, vllm_text

STARTED = 1796041200.0
TOKENS = 8830112.0


def dead() -> str:
    """The scrape of the report."""
    return case_text(6, "scrape at 10:00:00")


def two(folder: Path, before: str, now: str, cause: str = "engine hung", *, apart_s: float = 60.0) -> Answer:
    at, then = files(folder, [before, now], apart_s=apart_s)
    return check(cause, "--at", at, "--then", then)


def test_the_engine_is_hung_with_the_readings_of_both_times(tmp_path: Path) -> None:
    found = two(tmp_path, dead(), dead())
    assert (found.code, found.document["verdict"], found.document["state"]["word"]) == (0, "consistent", "hung")
    said = {"num_queue_reqs": 3, "num_running_reqs": 0, "http_requests_active": 3, "generation_tokens_total": TOKENS}
    for name, value in said.items():
        assert (name, value, 0.0) in found.readings
        assert (name, value, 60.0) in found.readings
    assert "engine hung" in found.text
    assert "generation_tokens_total=8830112 tokens" in found.text
    assert "health" not in found.text.replace("/health.*|/ready", "")
    assert "10:00:00" in found.text
    assert "10:01:00" in found.text


@pytest.mark.parametrize("cause", ["cold start", "cold-start", "Cold start after a restart"])
def test_cold_start_is_refused_because_the_process_runs_for_hours(tmp_path: Path, cause: str) -> None:
    found = two(tmp_path, dead(), dead(), cause)
    assert (found.code, found.document["verdict"], found.document["code"]) == (1, "refuted", "claim.spoken-against")
    assert ("uptime_s", 78000.0, 0.0) in found.readings
    # what the engine did before stands beside it
    assert "engine hung" in found.text
    assert "generation_tokens_total=8830112 tokens" in found.text
    assert f"process_start_time_seconds={STARTED:.0f} s" in found.text
    assert "cause: not established" in found.text
    assert "consistent with" not in found.text


@pytest.mark.parametrize("cause", ["engine hung", "state == hung", "hung", "state == busy"])
def test_one_scrape_cannot_tell_hung_from_busy(tmp_path: Path, cause: str) -> None:
    found = check(cause, "--at", files(tmp_path, [dead()])[0])
    assert (found.code, found.document["verdict"], found.document["state"]["word"]) == (1, "unverified", "not_proven")
    assert "cannot tell hung from busy: one sample" in found.text
    assert "cannot tell hung from busy: one sample" in found.document["reason"]


def test_one_scrape_does_tell_that_it_is_not_idle(tmp_path: Path) -> None:
    at = files(tmp_path, [dead()])[0]
    assert check("idle", "--at", at).document["verdict"] == "refuted"
    assert check("state != idle", "--at", at).document["verdict"] == "consistent"


@pytest.mark.parametrize("counter", ["generation_tokens_total", "prompt_tokens_total"])
def test_any_counter_that_moves_refutes_hung(tmp_path: Path, counter: str) -> None:
    later = re.sub(rf"({counter}.*) (\d+)", lambda m: f"{m[1]} {int(m[2]) + 1}", dead())
    assert later != dead()
    found = two(tmp_path, dead(), later)
    assert (found.code, found.document["verdict"], found.document["state"]["word"]) == (1, "refuted", "saturated")
    assert f"{counter} +1 tokens in 60 s" in found.text


def test_a_restart_in_between_proves_nothing(tmp_path: Path) -> None:
    later = dead().replace("1.7960412e+09", f"{EPOCH + 30}").replace("8830112", "12").replace("40110331", "40")
    found = two(tmp_path, dead(), later)
    assert (found.code, found.document["verdict"]) == (1, "unverified")
    assert "restarted between the two samples" in found.text
    # the same where only the counters tell
    before, now = (re.sub("process_start.*\n", "", text) for text in (dead(), later))
    assert "restarted between the two samples" in two(tmp_path, before, now).text


def test_an_unknown_start_hides_no_hang_but_refutes_no_cold_start(tmp_path: Path) -> None:
    silent = re.sub("process_start.*\n", "", dead())
    assert two(tmp_path, silent, silent).document["state"]["word"] == "hung"
    cold = two(tmp_path, silent, silent, "cold-start")
    assert (cold.code, cold.document["verdict"]) == (1, "unverified")
    assert "process_start_time_seconds" in cold.document["reason"]


def test_scrapes_that_are_too_close_prove_no_hang(tmp_path: Path) -> None:
    found = two(tmp_path, dead(), dead(), apart_s=10)
    assert (found.document["verdict"], found.document["state"]["word"]) == ("unverified", "not_proven")
    assert "10 s apart, 30 s are needed" in found.text


@pytest.mark.parametrize(
    ("family", "word"),
    [
        ("num_running_reqs", "hung"),  # the queue tells of work
        ("num_queue_reqs", "hung"),  # active HTTP requests do
        ("http_requests_active", "hung"),
        ("generation_tokens_total", "hung"),  # prompt tokens stand still
        ("token_usage", "hung"),
    ],
)
def test_a_family_that_is_missing_is_no_zero(tmp_path: Path, family: str, word: str) -> None:
    text = "\n".join(line for line in dead().splitlines() if family not in line)
    found = two(tmp_path, text, text)
    assert found.document["state"]["word"] == word
    assert family not in {name for name, _, _ in found.readings}


def test_without_any_counter_nothing_is_proven(tmp_path: Path) -> None:
    text = "\n".join(line for line in dead().splitlines() if "_tokens_total" not in line)
    found = two(tmp_path, text, text)
    assert (found.document["verdict"], found.document["state"]["word"]) == ("unverified", "not_proven")


def test_ranks_repeat_the_same_requests(tmp_path: Path) -> None:
    ranks = "\n".join(dead().replace('tp_rank="0"', f'tp_rank="{rank}"') for rank in range(4))
    once = "\n".join(dict.fromkeys(ranks.splitlines()))
    found = two(tmp_path, once, once)
    assert found.document["state"]["word"] == "hung"
    assert ("num_queue_reqs", 3.0, 0.0) in found.readings


def test_vllm_is_hung_by_its_own_names(tmp_path: Path) -> None:
    found = two(tmp_path, vllm_text(waiting=3), vllm_text(waiting=3))
    assert found.document["state"]["word"] == "hung"
    assert ("num_requests_waiting", 3.0, 0.0) in found.readings
    assert ("iteration_tokens_total_count", 500.0, 60.0) in found.readings


def test_idle_needs_the_router_too(tmp_path: Path) -> None:
    calm = engine_text()
    alone = two(tmp_path, calm, calm, "idle")
    assert (alone.code, alone.document["verdict"]) == (1, "unverified")
    assert "idle not proven: router_in_flight unknown" in alone.text
    whole = two(tmp_path, calm + router_text(0), calm + router_text(0), "idle")
    assert (whole.code, whole.document["state"]["word"]) == (0, "idle")
    busy = two(tmp_path, calm + router_text(2), calm + router_text(2), "idle")
    assert busy.document["verdict"] == "unverified"


def test_an_engine_and_its_router_in_two_files_are_read_as_one(tmp_path: Path) -> None:
    engines = files(tmp_path, [engine_text()] * 2, name="engine")
    routers = files(tmp_path, [router_text(0)] * 2, name="router")
    found = check("idle", "--at", engines[0], "--at", routers[0], "--then", engines[1], "--then", routers[1])
    assert (found.code, found.document["state"]["word"]) == (0, "idle")
