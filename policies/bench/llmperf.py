"""llmperf summary: one flat object, seconds, some numbers written as strings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from policies.bench.fields import Fields, Wanted
from policies.bench.metrics import MS_PER_S
from policies.bench.reader import Counts, Reader, made, names
from policies.bench.run import Identity, Load, Run
from policies.bench.source import Located

NAME = "llmperf"
WHAT = {"ttft_s": "ttft", "inter_token_latency_s": "itl", "end_to_end_latency_s": "e2e_latency"}
STATISTIC = {"mean": "mean", "min": "min", "max": "max", "stddev": "std", "quantiles_p50": "median"}
LATENCY = re.compile(
    r"results_(?P<what>" + "|".join(WHAT) + r")_(?P<statistic>mean|min|max|stddev|quantiles_p[0-9]{2})"
)
SECONDS_PER_MINUTE = 60.0


def fits(source: Located) -> bool:
    """`num_concurrent_requests` beside names that start with `results_`."""
    keys = names(source)
    return "num_concurrent_requests" in keys and sum(key.startswith("results_") for key in keys) >= 3


def read(fields: Fields) -> list[Run]:
    """The run."""
    fields.number_texts = True
    wanted = [
        Wanted(("results_mean_output_throughput_token_per_s",), "output_throughput", "tok/s"),
        Wanted(
            ("results_num_completed_requests_per_min",), "request_throughput", "req/s", scale=1 / SECONDS_PER_MINUTE
        ),
        *_latencies(fields.members()),
    ]
    metrics = fields.quantities(wanted, needed=frozenset({"output_throughput"}))
    completed = fields.count("results_num_completed_requests", needed=True)
    per_in = fields.number("results_number_input_tokens_mean")
    per_out = fields.number("results_number_output_tokens_mean")
    counts = Counts(
        completed=completed,
        asked=fields.positive("results_num_requests_started"),
        failed=fields.count("results_number_errors"),
        input_tokens=None if completed is None or per_in is None else per_in * completed,
        output_tokens=None if completed is None or per_out is None else per_out * completed,
    )
    load = Load(
        concurrency=fields.positive("num_concurrent_requests"),
        input_len=fields.count("mean_input_tokens"),
        output_len=fields.count("mean_output_tokens"),
        num_prompts=counts.asked,
    )
    fields.warnings.append("the duration is not in the file")
    identity = Identity(model=fields.text("model"), tool=fields.text("framework"))
    return made(NAME, fields, load, metrics, counts, identity)


def _latencies(keys: tuple[str, ...]) -> Iterator[Wanted]:
    for key in keys:
        found = LATENCY.fullmatch(key)
        if found is not None:
            statistic = STATISTIC.get(found["statistic"], found["statistic"].removeprefix("quantiles_"))
            yield Wanted((key,), f"{statistic}_{WHAT[found['what']]}_ms", "ms", MS_PER_S)


READER = Reader(NAME, fits, read)
