"""Metrics texts of engines and routers, as servers export them, and scrapes of them; times are seconds after NOW."""

from __future__ import annotations

from policies.metrics.engine import Role
from policies.metrics.samples import Scrape, read_scrape
from tests.policies.builders import NOW

STARTED = NOW - 78_000


def engine_text(
    *,
    running: object = 0,
    queued: object = 0,
    http: object = 0,
    tokens: object = 8830112,
    pd: dict[str, object] | None = None,
    role: str = "unified",
    started: object = STARTED,
    ranks: int = 1,
    **more: object,
) -> str:
    """What an SGLang engine exports; None leaves a family out. more: further families by their name."""
    families: dict[str, object] = {
        "num_running_reqs": running,
        "num_queue_reqs": queued,
        "generation_tokens_total": tokens,
        **(pd or {}),
        **more,
    }
    lines = [f"process_start_time_seconds {started}"] if started is not None else []
    for name, value in families.items():
        lines += [
            f'sglang:{name}{{engine_type="{role}",model_name="m",tp_rank="{rank}"}} {value}'
            for rank in range(ranks if value is not None else 0)
        ]
    if http is not None:
        lines.append(f'sglang:http_requests_active{{endpoint="/v1/chat/completions",method="POST"}} {http}')
    return "\n".join(lines) + "\n"


def vllm_text(*, running: object = 0, waiting: object = 0, tokens: object = 500, started: object = STARTED) -> str:
    """What a vLLM engine exports."""
    labels = '{engine="0",model_name="m"}'
    lines = [f"process_start_time_seconds {started}"] if started is not None else []
    lines += [f"vllm:num_requests_running{labels} {running}", f"vllm:num_requests_waiting{labels} {waiting}"]
    return "\n".join([*lines, f"vllm:iteration_tokens_total_count{labels} {tokens}"]) + "\n"


def router_text(in_flight: object = 0) -> str:
    """What a PD router exports."""
    return f'smg_worker_requests_active{{worker="http://127.0.0.1:30000"}} {in_flight}\n'


def scrape(text: str, at: float = 0.0, instance: str = "decode@gpu1") -> Scrape:
    """A scrape of a text."""
    found = read_scrape(text, instance=instance, url="http://127.0.0.1:30001/metrics", at=NOW + at)
    assert isinstance(found, Scrape), found
    return found


PD_EMPTY: dict[Role, dict[str, object]] = {
    "prefill": {"num_prefill_bootstrap_queue_reqs": 0, "num_prefill_inflight_queue_reqs": 0},
    "decode": {"num_decode_prealloc_queue_reqs": 0, "num_decode_transfer_queue_reqs": 0},
    "unified": {},
}
