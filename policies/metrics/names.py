"""The series that are known by name: what engines, routers and GPUs export, old spellings too.

Source: FACTS-serving 3.1 to 3.3; where a name was changed, the newest comes first.
"""

from __future__ import annotations

from typing import Literal

# labels of ranks that repeat the same requests; dp_rank and vLLM's `engine` do not
RANKS = "tp_rank, pp_rank, moe_ep_rank, pid"

RUNNING = ("sglang:num_running_reqs", "vllm:num_requests_running")
# vllm:num_requests_waiting_by_reason is a subset of the second and is never added to it
WAITING = ("sglang:num_queue_reqs", "vllm:num_requests_waiting")
USAGE = ("sglang:token_usage", "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
THROUGHPUT = "sglang:gen_throughput"

# queues between prefill and decode, by the role that always has them
QUEUES: dict[Literal["prefill", "decode"], tuple[tuple[str, ...], ...]] = {
    "prefill": (
        ("sglang:num_prefill_bootstrap_queue_reqs", "sglang:num_prefill_prealloc_queue_reqs"),
        ("sglang:num_prefill_inflight_queue_reqs",),
    ),
    "decode": (("sglang:num_decode_prealloc_queue_reqs",), ("sglang:num_decode_transfer_queue_reqs",)),
}
# and those that only newer versions have
QUEUES_SOMETIMES: dict[Literal["prefill", "decode"], tuple[tuple[str, ...], ...]] = {
    "prefill": (),
    "decode": (("sglang:num_decode_host_receive_queue_reqs",), ("sglang:num_decode_deferred_kv_release_reqs",)),
}

HTTP = "sglang:http_requests_active"
# endpoints that look and do no work: a scrape counts itself as active while it is answered
NO_WORK = (
    "/metrics.*|/health.*|/ready|/readiness|/liveness|/ping|/version|/(get_)?(server|model)_info|/get_loads?|/v1/loads?"
    "|/v1/models|/workers.*|/engine_metrics"
)
ACTIVE = "smg_worker_requests_active"
AGES = "smg_http_inflight_request_age_count"
FLYING = "sgl_router_worker_inflight_requests"
RECEIVED = "sgl_router_requests_total"
ANSWERED = "sgl_router_responses_total"  # counted when an answer begins, not when its last token is out
# each counts what a router has not finished, and none of them is enough alone
IN_FLIGHT = (f"sum({ACTIVE})", f"sum({AGES})", f"sum({FLYING})")

STARTED = "process_start_time_seconds"

# counters of work: they never go back in one life of a process
PROGRESS = (
    "sglang:prompt_tokens_total",
    "sglang:generation_tokens_total",
    "sglang:realtime_tokens_total",
    "sglang:forward_execution_seconds_total",
    "sglang:num_requests_total",
    "sglang:num_aborted_requests_total",
    "sglang:cached_tokens_total",
    "vllm:prompt_tokens_total",
    "vllm:generation_tokens_total",
    "vllm:iteration_tokens_total_count",
    "vllm:iteration_tokens_total_sum",
    "vllm:request_success_total",
    "vllm:num_preemptions_total",
)
# a counter that runs while there is nothing to do: the scheduler lives
PULSE = ("sglang:scheduler_idle_seconds_total",)

# names that are written and never existed, with those that were meant
WRONG = {
    "sglang:num_requests_running": "sglang:num_running_reqs",
    "sglang:num_requests_waiting": "sglang:num_queue_reqs",
}

# histograms of which the sums and counts are recorded, so that a mean can be followed
LATENCIES = (
    "sglang:time_to_first_token_seconds",
    "sglang:inter_token_latency_seconds",
    "sglang:queue_time_seconds",
    "sglang:e2e_request_latency_seconds",
    "vllm:time_to_first_token_seconds",
    "vllm:inter_token_latency_seconds",
    "vllm:request_queue_time_seconds",
    "vllm:e2e_request_latency_seconds",
)
FAILURES = (
    "sglang:num_transfer_failed_reqs_total",
    "sglang:num_bootstrap_failed_reqs_total",
    "smg_router_request_errors_total",
    "smg_router_upstream_responses_total",
    "DCGM_FI_DEV_XID_ERRORS",
)
# what is recorded whatever the fleet file asks for
RECORDED = frozenset(
    (
        *(*RUNNING, *WAITING, *USAGE, *PROGRESS, *PULSE, *FAILURES, THROUGHPUT, HTTP, STARTED),
        *(ACTIVE, AGES, FLYING, RECEIVED, ANSWERED),
        *(
            name
            for roles in (QUEUES, QUEUES_SOMETIMES)
            for queues in roles.values()
            for names in queues
            for name in names
        ),
        *(f"{name}_{part}" for name in LATENCIES for part in ("sum", "count")),
    )
)
