"""inference-perf lifecycle report: one object a load stage, open loop, seconds."""

from __future__ import annotations

from itertools import chain

from policies.bench.fields import Fields, Wanted
from policies.bench.metrics import MS_PER_S, statistics
from policies.bench.reader import Counts, Reader, made, names
from policies.bench.run import Load, Run
from policies.bench.source import Located

NAME = "inference-perf"
WHAT = {
    "time_to_first_token": "ttft",
    "time_per_output_token": "tpot",
    "inter_token_latency": "itl",
    "request_latency": "e2e_latency",
}
SPELLED = {"mean": "mean", "median": "median", "min": "min", "max": "max"}
PER_SECOND = (("requests", "request", "req/s"), ("input_tokens", "input", "tok/s"),
              ("output_tokens", "output", "tok/s"), ("total_tokens", "total", "tok/s"))  # fmt: skip
SATURATED_BELOW = 0.95


def fits(source: Located) -> bool:
    """`load_summary` beside `successes`."""
    return {"load_summary", "successes"} <= names(source)


def read(fields: Fields) -> list[Run]:
    """The run of the stage."""
    wanted = chain(
        (
            Wanted(("successes", "throughput", f"{theirs}_per_sec"), f"{ours}_throughput", unit)
            for theirs, ours, unit in PER_SECOND
        ),
        (Wanted(("load_summary", "achieved_rate"), "achieved_rate", "req/s"),),
        *(
            statistics(fields.members("successes", "latency", theirs), ("successes", "latency", theirs), ours, SPELLED,
                       MS_PER_S)
            for theirs, ours in WHAT.items()
        ),
    )  # fmt: skip
    metrics = fields.quantities(wanted, needed=frozenset({"output_throughput"}))
    completed = fields.count("successes", "count", needed=True)
    per_in = fields.number("successes", "prompt_len", "mean")
    per_out = fields.number("successes", "output_len", "mean")
    asked = fields.rate("load_summary", "requested_rate")
    achieved = metrics.get("achieved_rate")
    if isinstance(asked, float) and achieved is not None and achieved.value < SATURATED_BELOW * asked:
        fields.warnings.append(
            f"saturated: {achieved.value:.2f} of {asked:g} requested req/s were sent, latencies show the queue"
        )
    counts = Counts(
        completed=completed,
        failed=fields.count("failures", "count"),
        input_tokens=None if completed is None or per_in is None else per_in * completed,
        output_tokens=None if completed is None or per_out is None else per_out * completed,
    )
    runs = made(NAME, fields, Load(request_rate=asked), metrics, counts)
    sent_s = fields.number("load_summary", "send_duration")  # sending alone: throughputs count until the last answer
    return [run.model_copy(update={"duration_s": sent_s}) for run in runs] if not fields.problems else []


READER = Reader(NAME, fits, read)
