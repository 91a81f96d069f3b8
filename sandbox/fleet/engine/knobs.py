"""Environment variables as an engine reads them at start."""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass

TARGET_CTAS = "SGLANG_SM120_MMA_TARGET_CTAS"
TARGET_CTAS_DEFAULT = 256
BEST_CTAS = 512
BEST_SPEEDUP = 0.128  # Source: the recorded A/B of the story, output throughput at concurrency 64


@dataclass(frozen=True)
class IntKnob:
    """A whole number from the environment and where it came from: `env`, `default` or `invalid`."""

    name: str
    value: int
    source: str

    def report(self) -> dict[str, object]:
        """As `/server_info` shows it."""
        return {self.name: self.value, f"{self.name}.source": self.source}


def read_int(name: str, default: int) -> IntKnob:
    """Read an integer; a wrong text is named on stderr and replaced by the default, as the real engine does."""
    raw = os.environ.get(name)
    if raw is None:
        return IntKnob(name, default, "default")
    try:
        return IntKnob(name, int(raw), "env")
    except ValueError as error:
        print(f"Invalid value for {name}: {error}, using default", file=sys.stderr, flush=True)
        return IntKnob(name, default, "invalid")


def step_factor(target_ctas: int) -> float:
    """How much faster than the default a decode step runs with this block count; best at 512."""
    if target_ctas < 1:
        return 1.0
    distance = abs(math.log2(target_ctas / BEST_CTAS))
    return 1.0 + BEST_SPEEDUP * max(0.0, 1.0 - distance)
