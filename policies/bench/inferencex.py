"""InferenceX aggregates: the shape of `vllm bench serve`, latencies in seconds under names without a unit."""

from __future__ import annotations

from policies.bench.fields import Fields
from policies.bench.reader import Reader
from policies.bench.run import Run
from policies.bench.vllm import in_seconds, read_seconds

NAME = "inferencex"


def read(fields: Fields) -> list[Run]:
    """The run, with its latencies in milliseconds as everywhere here."""
    return read_seconds(NAME, fields)


READER = Reader(NAME, in_seconds, read)
