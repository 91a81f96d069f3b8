"""Runs of an A/B as a test needs them: complete, warm and alike, so that what a test changes is all that is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from policies.abtest.judge import Question, judge
from policies.abtest.judgement import Judgement
from policies.bench.run import Identity, Load, Quantity, Run

KNOWN = Identity(model="m", server_version="0.5.23", args={"tp_size": "8"}, args_sha256="d")
MS = {"median_ttft_ms": 80.0, "mean_ttft_ms": 88.0, "median_tpot_ms": 9.0, "p99_ttft_ms": 200.0, "p99_tpot_ms": 12.0}


def run(
    throughput: float,
    *,
    concurrency: int | None = 64,
    rate: float | None = None,
    identity: Identity = KNOWN,
    load: Load | None = None,
    completed: int | None = 1000,
    failed: int | None = 0,
    tokens: float | None = 128.0,
    duration_s: float | None = 120.0,
    order: int = 0,
    **ms: float,
) -> Run:
    """One run; further names are latencies without their `_ms`."""
    latencies = MS | {f"{name}_ms": value for name, value in ms.items()}
    metrics = {"output_throughput": Quantity(value=throughput, unit="tok/s")}
    metrics |= {name: Quantity(value=value, unit="ms") for name, value in latencies.items()}
    metrics["request_throughput"] = Quantity(value=throughput / 128, unit="req/s")
    return Run(
        format="sglang-bench-serving",
        load=load or Load(concurrency=concurrency, request_rate=rate if rate is not None else "inf", dataset="random"),
        metrics=metrics,
        completed=completed,
        failed=failed,
        input_tokens_per_request=1024.0,
        output_tokens_per_request=tokens,
        duration_s=duration_s,
        identity=identity,
        file="f.jsonl",
        order=order,
    )


def arm(values: Sequence[float], *, concurrency: int = 64, **more: float) -> list[Run]:
    """Runs of one arm in order."""
    return [run(value, concurrency=concurrency, order=i, **more) for i, value in enumerate(values)]  # type: ignore[arg-type]  # latencies are floats


def ask(a: Sequence[Run], b: Sequence[Run], question: Question | None = None) -> Judgement:
    """Judged as interleaved, with the default question."""
    return judge(a, b, question or Question(interleaved=True))


def codes(judgement: Judgement, effect: str | None = None) -> set[str]:
    """Codes of the findings, without their family."""
    found = judgement.problems
    return {f.code.removeprefix("abtest.") for f in found if effect is None or f.effect == effect}
