"""`python -m sglang.bench_serving`: one JSON object a line, appended to the file; old and new field sets.

Located: sglang 0.5.23 and files of 2024.
"""

from __future__ import annotations

from itertools import chain

from policies.bench.fields import Fields, Wanted
from policies.bench.identity import arguments, home_less
from policies.bench.metrics import THROUGHPUTS, latencies
from policies.bench.reader import Counts, Reader, made, names
from policies.bench.run import Identity, Load, Run
from policies.bench.source import Located

NAME = "sglang-bench-serving"
LATENCIES = {"ttft": "ttft", "tpot": "tpot", "itl": "itl", "e2e_latency": "e2e_latency"}
RANDOM = {"random", "random-ids", "random-image", "image"}
SHAREGPT = "sharegpt"


def fits(source: Located) -> bool:
    """Has the names of its data set options, and no model id, which is vLLM's."""
    keys = names(source)
    marks = {"dataset_name", "random_range_ratio", "random_input_len", "total_output_tokens_retokenized"}
    return bool(keys & marks) and "tokenizer_id" not in keys and bool(keys & {"backend", "output_throughput"})


def read(fields: Fields) -> list[Run]:
    """The run of one line."""
    keys = fields.members()
    wanted = chain(
        (Wanted((name,), name, unit) for name, unit in THROUGHPUTS.items()),
        (
            Wanted(("concurrency",), "measured_concurrency", "req"),
            Wanted(("accept_length",), "accept_length", "tok"),
            Wanted(("max_output_tokens_per_s",), "peak_output_throughput", "tok/s"),
        ),
        latencies(keys, LATENCIES, "_ms", 1.0),
    )
    metrics = fields.quantities(wanted, needed=frozenset({"output_throughput"}))
    counts = Counts(
        completed=fields.count("completed", needed=True),
        asked=fields.positive("num_prompts"),
        failed=_failed(fields),
        input_tokens=fields.number("total_input_tokens"),
        output_tokens=fields.number("total_output_tokens"),
        duration_s=fields.number("duration", needed=True),
    )
    return made(NAME, fields, _load(fields), metrics, counts, _identity(fields))


def _load(fields: Fields) -> Load:
    dataset = fields.text("dataset_name")
    random = dataset in RANDOM
    # the lengths of `random` stand in the line whatever the data set was
    output_len = fields.count("random_output_len") if random else None
    if dataset == SHAREGPT:
        output_len = fields.count("sharegpt_output_len")
    return Load(
        concurrency=fields.positive("max_concurrency"),
        request_rate=fields.rate("request_rate"),
        input_len=fields.count("random_input_len") if random else None,
        output_len=output_len,
        dataset=dataset,
        range_ratio=fields.number("random_range_ratio") if random else None,
        num_prompts=fields.positive("num_prompts"),
    )


def _failed(fields: Fields) -> int | None:
    """With --output-details every request has an error text, empty when it went well."""
    if "failed" in fields.members():
        return fields.count("failed")
    errors = fields.raw("errors")
    return sum(1 for error in errors if error) if isinstance(errors, list) and errors else None


def _identity(fields: Fields) -> Identity:
    return Identity(
        model=home_less(fields.text("server_info", "model_path")),
        server_version=fields.text("server_info", "version"),
        tool=fields.text("backend"),
        tag=fields.text("tag"),
        date=fields.text("date"),
        seed=fields.count("seed"),
        args=arguments(fields, "server_info", skip=frozenset({"version", "model_path"})),
        env=arguments(fields, "server_info", "internal_states", 0, "env_vars"),
    )


READER = Reader(NAME, fits, read)
