"""`vllm bench serve`: one JSON object a file, or appended. `failed` is there since October 2025.

Located: vllm 0.26, vllm#26478, and files of 2025.
"""

from __future__ import annotations

import re
from itertools import chain

from policies.bench.fields import Fields, Wanted
from policies.bench.identity import arguments, home_less
from policies.bench.metrics import MS_PER_S, latencies
from policies.bench.reader import Counts, Reader, made, names
from policies.bench.run import Identity, Load, Run
from policies.bench.source import Located

NAME = "vllm-bench-serve"
MARKS = frozenset({"tokenizer_id", "model_id", "num_prompts", "request_goodput", "burstiness", "endpoint_type"})
LATENCIES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2el": "e2e_latency"}
THROUGHPUTS = (
    Wanted(("request_throughput",), "request_throughput", "req/s"),
    Wanted(("request_goodput",), "request_goodput", "req/s"),
    Wanted(("request_goodput:",), "request_goodput", "req/s"),  # the name of early versions
    Wanted(("input_throughput",), "input_throughput", "tok/s"),
    Wanted(("output_throughput",), "output_throughput", "tok/s"),
    Wanted(("total_token_throughput",), "total_throughput", "tok/s"),
    Wanted(("max_output_tokens_per_s",), "peak_output_throughput", "tok/s"),
)
OWN = frozenset(
    {"date", "backend", "endpoint_type", "label", "model_id", "tokenizer_id", "num_prompts", "request_rate",
     "burstiness", "max_concurrency", "duration", "completed", "failed", "total_input_tokens", "total_output_tokens",
     "seed", "dataset_name", "tag"}
)  # fmt: skip
IN_SECONDS = re.compile(r"(mean|median|p[0-9]{1,2})_(ttft|tpot|itl|e2el|intvty)")
IN_MS = re.compile(r"(mean|median|p[0-9]{1,2})_(ttft|tpot|itl|e2el)_ms")


def in_seconds(source: Located) -> bool:
    """Whether it is the aggregate of InferenceX: the same shape, latencies in seconds under names without a unit."""
    keys = names(source)
    return len(keys & MARKS) >= 2 and any(IN_SECONDS.fullmatch(k) for k in keys)


def fits(source: Located) -> bool:
    """At least two of its own names, and no latency without a unit."""
    return len(names(source) & MARKS) >= 2 and not in_seconds(source)


def read(fields: Fields) -> list[Run]:
    """The run, with latencies in milliseconds."""
    return aggregate(NAME, fields, "_ms", 1.0)


def read_seconds(name: str, fields: Fields) -> list[Run]:
    """The run of a file in seconds. Milliseconds beside them would leave it open which is which."""
    mixed = next((key for key in fields.members() if IN_MS.fullmatch(key)), None)
    if mixed is not None:
        fields.problem((mixed,), f"`{mixed}` stands beside latencies without a unit, expected one unit in a file")
    return aggregate(name, fields, "", MS_PER_S)


def aggregate(name: str, fields: Fields, suffix: str, scale: float) -> list[Run]:
    """The run of either shape."""
    keys = fields.members()
    metrics = fields.quantities(
        chain(THROUGHPUTS, latencies(keys, LATENCIES, suffix, scale)), needed=frozenset({"output_throughput"})
    )
    counts = Counts(
        completed=fields.count("completed", needed=True),
        asked=fields.positive("num_prompts"),
        failed=fields.count("failed"),
        input_tokens=fields.number("total_input_tokens"),
        output_tokens=fields.number("total_output_tokens"),
        duration_s=fields.number("duration", needed=True),
    )
    load = Load(
        concurrency=fields.positive("max_concurrency"),
        request_rate=fields.rate("request_rate"),
        input_len=fields.count("random_input_len") or fields.count("input_len"),
        output_len=fields.count("random_output_len") or fields.count("output_len"),
        dataset=fields.text("dataset_name"),
        range_ratio=fields.number("random_range_ratio"),
        num_prompts=counts.asked,
    )
    measured = {want.path[0] for want in THROUGHPUTS} | {k for k in keys if IN_MS.match(k) or IN_SECONDS.match(k)}
    told = arguments(fields, skip=OWN | frozenset(str(k) for k in measured))
    identity = Identity(
        model=home_less(fields.text("model_id")),
        tool=fields.text("backend") or fields.text("endpoint_type"),
        tag=fields.text("tag") or fields.text("label"),
        date=fields.text("date"),
        seed=fields.count("seed"),
        # what --metadata adds is text; numbers beside the known ones are measurements of a newer version
        args={k: v for k, v in told.items() if isinstance(fields.raw(k), str)},
    )
    return made(name, fields, load, metrics, counts, identity)


READER = Reader(NAME, fits, read)
