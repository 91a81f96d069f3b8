"""What a result file says: runs, each with its load, its metrics with units and what is known of the server."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from policies.model import Model

Unlimited = Literal["inf"]


class Quantity(Model):
    """A finite number with its unit."""

    value: float = Field(allow_inf_nan=False)
    unit: str


class Load(Model):
    """What was asked of the server. Two runs are repeats of each other when every field is the same.

    `request_rate` is in requests per second; `inf` is no limit, None is not told. None everywhere is "not in the file".
    """

    concurrency: int | None = None
    request_rate: float | Unlimited | None = None
    input_len: int | None = None
    output_len: int | None = None
    dataset: str | None = None
    range_ratio: float | None = None
    num_prompts: int | None = None

    @property
    def label(self) -> str:
        """`C64`, `4 req/s` or `open burst`, as a person names the point."""
        if self.concurrency is not None:
            return f"C{self.concurrency}"
        if self.request_rate == "inf":
            return "open burst"
        return "load not told" if self.request_rate is None else f"{self.request_rate:g} req/s"


class Identity(Model):
    """What is known of the server and the tool. No secrets, addresses or host names: see `policies.bench.identity`."""

    model: str | None = None
    server_version: str | None = None
    tool: str | None = None
    tag: str | None = None
    date: str | None = None  # as the file writes it
    seed: int | None = None
    args: dict[str, str] = Field(default_factory=dict)
    args_sha256: str | None = None  # None: the file tells no arguments
    env: dict[str, str] = Field(default_factory=dict)  # what the server told of its environment


class Run(Model):
    """One observation. `order` counts the runs of a file from 0; `arm` is the file's own name for an arm, if any."""

    format: str
    load: Load
    metrics: dict[str, Quantity]
    completed: int | None = None
    failed: int | None = None  # None: unknown, which is not 0
    input_tokens_per_request: float | None = None
    output_tokens_per_request: float | None = None
    duration_s: float | None = None
    identity: Identity = Identity()
    arm: str | None = None
    file: str = ""
    sha256: str = ""
    line: int = 1
    order: int = 0
    warnings: tuple[str, ...] = ()


class Problem(Model):
    """Why something in a file was not taken. `line` counts from 1."""

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class Reading(Model):
    """All that one file gave. `skipped` says why a text that never was a result file was left alone."""

    file: str
    sha256: str
    runs: tuple[Run, ...] = ()
    problems: tuple[Problem, ...] = ()
    skipped: str | None = None
