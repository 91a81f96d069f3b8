"""Each rule for reading an engine's or a router's metrics, as far as it can be seen on real scrapes with those."""

from __future__ import annotations

import pytest

from bot.messages import strict
from policies.metrics.engine import Engine, Number, Progress, progress, pulse
from policies.metrics.names import NO_WORK
from policies.metrics.promql import Query, compile_query
from policies.metrics.samples import Scrape
from tests.policies.test_metrics_samples import read
from tests.shared import shared


def engine(text: str) -> Engine:
    return Engine(read(text))


def code(number: Number) -> str | None:
    if number.problem is None:
        return None
    assert strict(number.problem)
    return number.problem.code


def lines(*found: str) -> str:
    return "".join(f"{line}\n" for line in found)


def known(number: Number) -> tuple[float | None, str | None]:
    return number.value, code(number)


def real() -> Scrape:
    return read(shared("metrics/sglang_docs_sample.prom").read_text())


def test_a_real_scrape_without_ranks() -> None:
    found = Engine(real())
    assert known(found.running) == (162.0, None)
    assert known(found.queued) == (2826.0, None)
    assert known(found.usage) == (0.28, None)
    assert found.role is None
    assert found.started is None
    assert found.pd_queues(None) == ()
    assert found.counters() == {"sglang:prompt_tokens_total": 8128902.0, "sglang:generation_tokens_total": 7557572.0}


def test_a_reading_is_the_answer_to_the_query_that_it_names() -> None:
    found = Engine(real()).running
    assert found.query == 'sum(max without (tp_rank, pp_rank, moe_ep_rank, pid) (sglang:num_running_reqs{priority=""}))'
    assert isinstance(compile_query(found.query), Query)


def test_of_the_ranks_of_one_dp_rank_one_counts_and_dp_ranks_are_added() -> None:
    ranks = 'dp_rank="{dp}",tp_rank="{tp}",pp_rank="{pp}",moe_ep_rank="{tp}",pid="{dp}{tp}{pp}"'
    text = "".join(
        f"sglang:num_running_reqs{{{ranks.format(dp=dp, tp=tp, pp=pp)}}} {n}\n"
        for dp, n in ((0, 30), (1, 23))
        for tp in range(4)
        for pp in range(2)
    )
    assert known(engine(text).running) == (53.0, None)


def test_engines_of_vllm_and_models_are_added() -> None:
    text = lines('vllm:num_requests_running{engine="0"} 3', 'vllm:num_requests_running{engine="1"} 4')
    assert known(engine(text).running) == (7.0, None)


def test_ranks_that_disagree_give_the_greatest_and_both_are_told() -> None:
    found = engine('sglang:num_queue_reqs{tp_rank="0"} 0\nsglang:num_queue_reqs{tp_rank="1"} 11\n').queued
    assert (found.value, found.least, code(found)) == (11.0, 0.0, "metrics.ranks-disagree")
    assert found.problem is not None
    assert (found.problem.values["least"], found.problem.values["most"]) == (0.0, 11.0)


def test_the_series_without_a_priority_is_the_total_of_the_others() -> None:
    parts = 'sglang:num_queue_reqs{priority="0"} 4\nsglang:num_queue_reqs{priority="1"} 7\n'
    assert known(engine('sglang:num_queue_reqs{priority=""} 11\n' + parts).queued) == (11.0, None)
    assert known(engine(parts).queued) == (None, "metrics.missing")


def test_a_missing_family_is_no_data() -> None:
    found = engine("up 1\n")
    numbers = [found.running, found.queued, found.usage, found.throughput, found.http_active, found.router_in_flight]
    assert [known(number) for number in numbers] == [(None, "metrics.missing")] * 6
    assert found.counters() == {}


@pytest.mark.parametrize("value", ["NaN", "+Inf"])
def test_a_rank_that_does_not_know_makes_the_whole_unknown(value: str) -> None:
    found = engine(f'sglang:num_running_reqs{{tp_rank="0"}} 5\nsglang:num_running_reqs{{tp_rank="1"}} {value}\n')
    assert known(found.running) == (None, "metrics.no-number")


def test_the_last_throughput_is_not_that_of_now() -> None:
    found = Engine(real()).throughput
    assert (found.value, code(found)) == (86.50814177726902, "metrics.last-value")


def test_waiting_by_reason_is_a_part_of_what_waits() -> None:
    text = (
        'vllm:num_requests_waiting{engine="0"} 9\n'
        'vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 6\n'
        'vllm:num_requests_waiting_by_reason{engine="0",reason="deferred"} 3\n'
    )
    assert known(engine(text).queued) == (9.0, None)


@pytest.mark.parametrize("name", ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage"])
def test_the_fullest_rank_says_how_full_the_cache_is(name: str) -> None:
    found = engine(f'{name}{{engine="0",dp_rank="0"}} 0.25\n{name}{{engine="1",dp_rank="1"}} 0.875\n').usage
    assert (found.value, found.unit) == (0.875, "1")


def test_what_no_engine_exports_is_not_read() -> None:
    assert engine("sglang:num_requests_running 5\n").running.value is None


@pytest.mark.parametrize("bootstrap", ["num_prefill_bootstrap_queue_reqs", "num_prefill_prealloc_queue_reqs"])
def test_the_queues_of_a_prefill_under_old_and_new_names(bootstrap: str) -> None:
    inflight = "sglang:num_prefill_inflight_queue_reqs"
    text = lines(f'sglang:{bootstrap}{{engine_type="prefill"}} 2', f'{inflight}{{engine_type="prefill"}} 3')
    assert [known(n) for n in engine(text).pd_queues("prefill")] == [(2.0, None), (3.0, None)]


def test_a_queue_that_the_role_must_have_is_missed_and_one_of_newer_versions_is_not() -> None:
    decode = "sglang:num_decode_prealloc_queue_reqs 0\n"
    assert [known(n) for n in engine(decode).pd_queues("decode")] == [(0.0, None), (None, "metrics.missing")]
    both = decode + "sglang:num_decode_transfer_queue_reqs 4\nsglang:num_decode_deferred_kv_release_reqs 5\n"
    assert [n.value for n in engine(both).pd_queues("decode")] == [0.0, 4.0, 5.0]
    assert [n.name for n in engine(both).pd_queues("decode")] == [
        "decode_prealloc_queue_reqs",
        "decode_transfer_queue_reqs",
        "decode_deferred_kv_release_reqs",
    ]
    assert [n.value for n in engine(both).pd_queues("unified")] == [0.0, 4.0, 5.0]  # exported is read, whoever it is
    assert len(engine(both).pd_queues("dynamic")) == 5


@pytest.mark.parametrize("role", ["unified", "prefill", "decode", "dynamic"])
def test_the_role_is_what_the_engine_says(role: str) -> None:
    assert engine(f'sglang:num_running_reqs{{engine_type="{role}",tp_rank="0"}} 0\n').role == role


def test_a_scrape_does_not_count_itself_as_work() -> None:
    looks = ("/metrics", "/metrics/", "/health", "/health_generate", "/get_server_info", "/v1/loads", "/v1/models")
    text = "".join(f'sglang:http_requests_active{{endpoint="{path}",method="GET"}} 1\n' for path in looks)
    assert known(engine(text).http_active) == (0.0, None)
    text += 'sglang:http_requests_active{endpoint="/v1/completions",method="POST"} 53\n'
    text += 'sglang:http_requests_active{endpoint="/generate",method="POST"} 2\n'
    assert known(engine(text).http_active) == (55.0, None)
    assert NO_WORK in engine(text).http_active.query


ACTIVE = 'smg_worker_requests_active{worker="a"} '
YOUNG = 'smg_http_inflight_request_age_count{gt="0",le="30"} '
OLD = 'smg_http_inflight_request_age_count{gt="30",le="60"} '
RECEIVED = 'sgl_router_requests_total{route="/v1/completions"} '
ANSWERED = 'sgl_router_responses_total{route="/v1/completions",status_code="200"} '
FLYING = 'sgl_router_worker_inflight_requests{worker_url="u"} '
LOOKS = ('sgl_router_requests_total{route="/metrics"} 9', 'sgl_router_responses_total{route="/metrics"} 8')


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # the ages are counted every 20 s: the workers' own count is newer, and the other way round after a burst
        (lines(ACTIVE + "3", YOUNG + "0"), 3.0),
        (lines(ACTIVE + "0", YOUNG + "2"), 2.0),
        (lines(ACTIVE + "0", YOUNG + "0"), 0.0),
        (lines(YOUNG + "4", OLD + "1"), 5.0),
        # a request of the experimental router is answered when its first byte is out, and in flight to the last
        (lines(RECEIVED + "9", ANSWERED + "9", FLYING + "2"), 2.0),
        (lines(RECEIVED + "9", ANSWERED + "5", FLYING + "2"), 4.0),
        (lines(RECEIVED + "9"), 9.0),
        (lines(*LOOKS), 0.0),
        (lines(RECEIVED + "NaN"), None),
        (lines(ACTIVE + "NaN", YOUNG + "0"), None),
    ],
)
def test_a_router_has_nothing_in_flight_only_when_everything_says_so(text: str, value: float | None) -> None:
    found = engine(text).router_in_flight
    assert found.value == value
    assert (found.problem is None) is (value is not None)


def test_no_value_of_a_gpu_is_no_reading() -> None:
    scrape = read(shared("metrics/dcgm-exporter_readme_sample.prom").read_text())
    assert scrape.named("DCGM_FI_DEV_MEMORY_TEMP") == ()


LIFE = lines(
    "process_start_time_seconds {start}",
    "sglang:generation_tokens_total {tokens}",
    "sglang:num_requests_total {requests}",
)


def life(start: float, tokens: float, requests: float = 3.0) -> Scrape:
    return read(LIFE.format(start=start, tokens=tokens, requests=requests))


def test_a_counter_that_moved_is_progress() -> None:
    moved = {"sglang:generation_tokens_total": 40.0}
    assert progress(life(1000, 100), life(1000, 140)) == Progress(False, moved, ("sglang:num_requests_total",))


def test_counters_of_another_life_are_not_compared() -> None:
    assert progress(life(1000, 100), life(2000, 140)) == Progress(True, {}, ())
    assert progress(life(1000, 100), life(1000, 5)) == Progress(True, {}, ())


def test_without_a_start_time_only_a_fall_tells_a_restart() -> None:
    bare = [read(f"sglang:generation_tokens_total {n}\n") for n in (100, 140, 5)]
    assert progress(bare[0], bare[1]) == Progress(None, {"sglang:generation_tokens_total": 40.0}, ())
    assert progress(bare[0], bare[2]) == Progress(True, {}, ())


def test_a_counter_that_came_up_in_between_counted_something() -> None:
    later = read(LIFE.format(start=1000, tokens=100, requests=3) + "sglang:num_aborted_requests_total 2\n")
    assert progress(life(1000, 100), later).moved == {"sglang:num_aborted_requests_total": 2.0}


def test_a_counter_that_is_gone_is_neither_moved_nor_still() -> None:
    assert progress(life(1000, 100), read("process_start_time_seconds 1000\n")) == Progress(False, {}, ())


def test_an_idle_scheduler_ticks_without_working() -> None:
    tick = "process_start_time_seconds 1\nsglang:generation_tokens_total 5\nsglang:scheduler_idle_seconds_total {n}\n"
    earlier, later = read(tick.format(n=10)), read(tick.format(n=25))
    assert progress(earlier, later).moved == {}
    assert pulse(earlier, later).moved == {"sglang:scheduler_idle_seconds_total": 15.0}


def test_ranks_repeat_counters_too() -> None:
    text = "".join(
        f'sglang:realtime_tokens_total{{dp_rank="{dp}",tp_rank="{tp}",mode="{mode}"}} {n}\n'
        for dp in (0, 1)
        for tp in (0, 1)
        for mode, n in (("decode", 10), ("prefill_compute", 5))
    )
    assert engine(text).counters() == {"sglang:realtime_tokens_total": 30.0}


def test_steps_of_a_vllm_engine_are_progress() -> None:
    text = 'vllm:iteration_tokens_total_count{{engine="0"}} {n}\nvllm:iteration_tokens_total_sum{{engine="0"}} 5\n'
    found = progress(read(text.format(n=7)), read(text.format(n=9)))
    assert (found.moved, found.still) == (
        {"vllm:iteration_tokens_total_count": 2.0},
        ("vllm:iteration_tokens_total_sum",),
    )
