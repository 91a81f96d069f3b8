"""Case 7: health 503 while a long prefill runs. Two scrapes show the progress, so that nobody calls it dead."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.bot.dumps import Answer, case_text, check, files

QUEUE = "sglang:num_queue_reqs"


def both() -> tuple[str, str]:
    """The two scrapes of the report, which writes them as `before -> after`."""
    lines = case_text(7, "scrape at t and t+30 s").splitlines()
    pairs = [re.fullmatch(r"(.*\}) (\S+)\s+-> (\S+)", line) for line in lines if line.strip()]
    assert all(pairs)
    first, second = ("\n".join(f"{m[1]} {m[part]}" for m in pairs if m) + "\n" for part in (2, 3))
    return first, second


def judged(folder: Path, cause: str, *texts: str, apart_s: float = 30.0) -> Answer:
    at, *then = files(folder, texts or both(), apart_s=apart_s)
    return check(cause, "--at", at, *(word for one in then for word in ("--then", one)))


def test_it_is_busy_and_queueing_with_the_rate_at_which_it_works(tmp_path: Path) -> None:
    found = judged(tmp_path, "state == busy")
    assert (found.code, found.document["verdict"], found.document["state"]["word"]) == (0, "consistent", "saturated")
    assert "realtime_tokens_total +262144 tokens in 30 s (8738 tokens/s)" in found.text
    assert ("num_queue_reqs", 37.0, 0.0) in found.readings
    assert ("num_queue_reqs", 39.0, 30.0) in found.readings


@pytest.mark.parametrize(
    ("cause", "verdict"), [("engine hung", "refuted"), ("idle", "refuted"), ("saturated", "consistent")]
)
def test_it_is_neither_dead_nor_idle(tmp_path: Path, cause: str, verdict: str) -> None:
    found = judged(tmp_path, cause)
    assert (found.document["verdict"], found.code) == (verdict, int(verdict == "refuted"))


def test_one_scrape_tells_neither(tmp_path: Path) -> None:
    found = judged(tmp_path, "engine hung", both()[0])
    assert (found.code, found.document["verdict"]) == (1, "unverified")
    assert "cannot tell hung from busy: one sample" in found.text


def test_the_queue_explains_a_slow_request_only_against_a_time_without_one(tmp_path: Path) -> None:
    first, second = both()
    calm = re.sub(rf"({QUEUE}.*) 37", r"\1 0", first)
    at, then = files(tmp_path, [first, second], apart_s=30)
    before = f"{tmp_path}/before.prom"
    Path(before).write_text(calm, encoding="utf-8")
    started = f"process_start_time_seconds {1796119200 - 78_000}\n"
    for name in ("scrape0", "scrape1"):
        path = tmp_path / f"{name}.prom"
        path.write_text(started + path.read_text(encoding="utf-8"), encoding="utf-8")
    effect = ("--at", at, "--then", then)
    verified = check("queued-behind-load", *effect, "--baseline", f"{before}@2026-12-01T09:00:00Z")
    assert (verified.code, verified.document["verdict"]) == (0, "verified")
    assert "cause: queued-behind-load (the request queued behind live traffic)" in verified.text
    assert ("queue_reqs", 0.0, -3600.0) in verified.readings
    assert check("queued-behind-load", *effect).document["verdict"] == "consistent"
    same = check("queued-behind-load", *effect, "--baseline", f"{tmp_path}/scrape0.prom@2026-12-01T09:00:00Z")
    assert (same.document["verdict"], same.document["code"]) == ("consistent", "claim.held-before")
    late = check("queued-behind-load", *effect, "--baseline", f"{before}@2026-12-01T11:00:00Z")
    assert (late.document["verdict"], late.document["code"]) == ("consistent", "claim.baseline-not-before")


def test_the_same_counters_at_both_times_are_no_progress(tmp_path: Path) -> None:
    first, second = both()
    stuck = re.sub("41549824", "41287680", second)
    assert judged(tmp_path, "engine hung", first, stuck).document["state"]["word"] == "hung"
    assert judged(tmp_path, "engine hung", first, stuck, apart_s=20).document["state"]["word"] == "not_proven"
    assert judged(tmp_path, "engine hung", second, first).document["state"]["word"] == "not_proven"  # it went back


def test_a_queue_that_shrinks_is_busy_and_not_saturated(tmp_path: Path) -> None:
    first, second = both()
    fewer = re.sub(rf"({QUEUE}.*) 39", r"\1 30", second)
    assert judged(tmp_path, "busy", first, fewer).document["state"]["word"] == "busy"
    assert judged(tmp_path, "saturated", first, fewer).document["verdict"] == "refuted"
