"""Result files of benchmarks: one reader a format, chosen by what a file holds and never by its name.

Add one by copying `llmperf.py` and listing its READER here. `policies.bench.reading.read_runs` asks them in this order.
"""

from __future__ import annotations

from policies.bench import (
    aiperf,
    aiperf_csv,
    guidellm,
    hyperfine,
    inference_perf,
    inferencex,
    llmperf,
    moe,
    sglang,
    vllm,
)
from policies.bench.reader import Reader

READERS: tuple[Reader, ...] = (
    inferencex.READER,
    vllm.READER,
    sglang.READER,
    guidellm.READER,
    aiperf.READER,
    aiperf_csv.READER,
    llmperf.READER,
    inference_perf.READER,
    hyperfine.READER,
    moe.RUN,
    moe.SUMMARY,
)
