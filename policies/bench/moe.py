"""Two files of sglang's kernel benchmark moe_tp_ep: one run with its requests, and the summary of arms with repeats.

`throughput` is output tokens per second: output_tokens / wall_seconds in the file of one run gives it.
"""

from __future__ import annotations

from collections.abc import Iterator

from policies.bench.fields import Fields, Wanted, plain
from policies.bench.reader import MOST_INSIDE, Counts, Reader, made, names
from policies.bench.run import Identity, Load, Run
from policies.bench.source import Located

NAME_RUN = "sglang-moe-run"
NAME_SUMMARY = "sglang-moe-summary"
WHAT = {"ttft": "ttft", "tpot": "tpot", "total": "e2e_latency"}


def fits_run(source: Located) -> bool:
    """One run, with a row a request."""
    return {"wall_seconds", "per_request"} <= names(source) or {"wall_seconds", "output_tokens"} <= names(source)


def read_run(fields: Fields) -> list[Run]:
    """The run."""
    wanted = [Wanted(("throughput",), "output_throughput", "tok/s")]
    for theirs, ours in WHAT.items():
        wanted.append(Wanted((f"{theirs}_ms_median",), f"median_{ours}_ms", "ms"))
        wanted.append(Wanted((f"{theirs}_ms_p95",), f"p95_{ours}_ms", "ms"))
    metrics = fields.quantities(wanted, needed=frozenset({"output_throughput"}))
    asked = fields.positive("requests")
    rows = fields.size("per_request")
    counts = Counts(
        completed=rows or None,
        asked=asked,
        output_tokens=fields.number("output_tokens"),
        duration_s=fields.number("wall_seconds", needed=True),
    )
    load = Load(
        concurrency=fields.positive("concurrency"),
        input_len=fields.count("input_len"),
        output_len=fields.count("output_len"),
        num_prompts=asked,
    )
    return made(NAME_RUN, fields, load, metrics, counts, Identity(seed=fields.count("seed")))


def fits_summary(source: Located) -> bool:
    """Arms under `configurations`, in one object or a list of them."""
    value = source.value
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, dict) and {"configurations", "independent_runs"} <= first.keys()


def read_summary(fields: Fields) -> list[Run]:
    """Every run of every arm, arms one after the other as the file has them."""
    blocks = [fields.below(i) for i in range(fields.size())] or [fields.below()]
    runs: list[Run] = []
    arms = [(block, arm) for block in blocks[: MOST_INSIDE + 1] for arm in block.members("configurations")]
    count = sum(block.size("configurations", arm, "throughput", "run_values") for block, arm in arms)
    if not fields.within(max(count, len(arms), len(blocks)), MOST_INSIDE):
        return []
    for block in blocks:
        for arm in block.members("configurations"):
            runs += _arm(fields, block.below("configurations", arm), block, plain(arm, 60))
        fields.problems += block.problems
    return runs


def _arm(fields: Fields, arm: Fields, block: Fields, name: str) -> Iterator[Run]:
    told = block.count("independent_runs")
    count = arm.size("throughput", "run_values")
    if told != count:
        arm.problem(("throughput", "run_values"), f"{count} run values, expected {told} as `independent_runs` says")
    load = Load(input_len=block.count("input_len"))
    for index in range(count):
        one = arm.below()
        wanted = [Wanted(("throughput", "run_values", index), "output_throughput", "tok/s")]
        for theirs, ours in WHAT.items():
            wanted.append(Wanted((f"{theirs}_ms_median", "run_values", index), f"median_{ours}_ms", "ms"))
        metrics = one.quantities(wanted, needed=frozenset({"output_throughput"}))
        one.warnings.append("concurrency, output length and requests completed are not in the file")
        line = one.source.line_of((*one.base, "throughput", "run_values", index))
        yield from (
            run.model_copy(update={"line": line}) for run in made(NAME_SUMMARY, one, load, metrics, Counts(), arm=name)
        )
        fields.problems += one.problems
    fields.problems += arm.problems


RUN = Reader(NAME_RUN, fits_run, read_run)
SUMMARY = Reader(NAME_SUMMARY, fits_summary, read_summary)
