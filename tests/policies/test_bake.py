"""The watch after the last gate: what speaks against a change, what is not measured, and what proves nothing."""

from __future__ import annotations

import pytest

from policies.bake import counters, judge, measured, reading
from policies.events import BakeReading
from tests.policies import builders as b

METRICS = """\
# TYPE sglang:num_transfer_failed_reqs counter
sglang:num_transfer_failed_reqs_total{engine_type="decode",tp_rank="0"} 2
# TYPE sglang:http_responses counter
sglang:http_responses_total{endpoint="/generate",status_code="200"} 900
sglang:http_responses_total{endpoint="/generate",status_code="503"} 3
sglang:http_responses_total{endpoint="/generate",status_code="500"} 1
# TYPE smg_router_request_errors counter
smg_router_request_errors_total{error_type="timeout"} 5
"""


def seen(**changes: object) -> BakeReading:
    """A calm look, with changes."""
    calm: dict[str, object] = {
        "incarnation": b.life(),
        "n_restarts": 0,
        "result": "success",
        "active_state": "active",
        "counters": {"http-5xx": 4.0, "failed-transfers": 2.0},
    }
    return BakeReading.model_validate({**calm, **changes})


def codes(before: BakeReading, now: BakeReading) -> list[str]:
    return [f.code for f in judge({"decode@gpu1": before}, {"decode@gpu1": now})]


def test_failures_are_counted_by_what_they_are_and_answers_that_are_no_failure_are_not() -> None:
    assert counters(METRICS) == {"failed-transfers": 2.0, "http-5xx": 4.0, "router-errors": 5.0}


RANKED = """\
sglang:num_transfer_failed_reqs_total{tp_rank="0",dp_rank="0",priority=""} 3
sglang:num_transfer_failed_reqs_total{tp_rank="1",dp_rank="0",priority=""} 3
sglang:num_transfer_failed_reqs_total{tp_rank="2",dp_rank="0",priority=""} 2
sglang:num_transfer_failed_reqs_total{tp_rank="0",dp_rank="1",priority=""} 4
sglang:num_transfer_failed_reqs_total{tp_rank="1",dp_rank="1",priority=""} 4
sglang:num_transfer_failed_reqs_total{tp_rank="0",dp_rank="1",priority="5"} 4
"""


def test_ranks_that_repeat_the_same_requests_count_once_and_groups_of_ranks_are_added() -> None:
    assert counters(RANKED) == {"failed-transfers": 3.0 + 4.0}


def test_one_failed_transfer_on_eight_ranks_is_a_rise_of_one() -> None:
    def text(count: int) -> str:
        return "".join(f'sglang:num_transfer_failed_reqs_total{{tp_rank="{r}"}} {count}\n' for r in range(8))

    before, now = seen(counters=counters(text(4))), seen(counters=counters(text(5)))
    (finding,) = judge({"decode@gpu1": before}, {"decode@gpu1": now})
    assert finding.values["rise"] == 1.0


@pytest.mark.parametrize("order", [("NaN", "3"), ("3", "NaN")])
def test_a_rank_that_does_not_know_makes_the_count_unknown(order: tuple[str, str]) -> None:
    text = "".join(f'sglang:num_transfer_failed_reqs_total{{tp_rank="{r}"}} {v}\n' for r, v in enumerate(order))
    assert counters(text) == {}


def test_an_engine_that_never_failed_has_a_counter_at_zero_and_not_none() -> None:
    assert counters('sglang:http_responses_total{status_code="200"} 7\n') == {"http-5xx": 0.0}


@pytest.mark.parametrize("text", ["", "no metrics\x00{", "sglang:http_responses_total NaN\n"])
def test_what_cannot_be_read_is_not_counted_as_zero(text: str) -> None:
    assert counters(text) == {}


def test_a_calm_watch_finds_nothing() -> None:
    assert codes(seen(), seen()) == []


def test_a_counter_that_rises_speaks_against_the_change_and_is_named_with_its_rise() -> None:
    (finding,) = judge({"decode@gpu1": seen()}, {"decode@gpu1": seen(counters={"http-5xx": 7.0})})
    assert (finding.code, finding.values) == (
        "bake.failures-rose",
        {"instance": "decode@gpu1", "what": "http-5xx", "rise": 3.0},
    )


def test_a_counter_that_disappears_is_no_rise() -> None:
    assert codes(seen(), seen(counters={})) == []


def test_another_life_is_a_restart_that_clawback_did_not_make_and_its_counters_are_not_compared() -> None:
    assert codes(seen(), seen(incarnation=b.life(9), counters={"http-5xx": 90.0})) == ["bake.restarted"]


def test_a_kill_for_memory_is_told_as_that() -> None:
    assert codes(seen(), seen(result="oom-kill", active_state="activating")) == ["bake.out-of-memory"]


def test_a_unit_that_is_not_active_any_more_is_found() -> None:
    assert codes(seen(), seen(active_state="failed", result="exit-code")) == ["bake.not-active"]


def test_what_was_watched_is_named_and_so_is_that_nothing_was_counted() -> None:
    (said,) = measured({"decode@gpu1": seen(), "router@gpu1": seen(counters={"router-errors": 0.0})})
    assert said.values == {"what": "failed-transfers, http-5xx, router-errors"}
    assert [f.code for f in measured({"decode@gpu1": seen(counters={})})] == ["bake.no-counters"]


def test_metrics_that_were_cut_or_not_answered_are_not_measured() -> None:
    cut = b.answer(200, METRICS, id="metrics", truncated=True)
    assert reading(b.unit("decode@gpu1", http=(cut,))).counters == {}
    assert reading(b.unit("decode@gpu1", http=(b.answer(503, METRICS, id="metrics"),))).counters == {}
    whole = reading(b.unit("decode@gpu1", http=(b.answer(200, METRICS, id="metrics"),)))
    assert whole.counters["failed-transfers"] == 2.0
