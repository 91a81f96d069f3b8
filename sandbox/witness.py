"""A witness of the load: reads what decode itself exports, again and again, while scenes are played."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass
from types import TracebackType

from sandbox.stage import Stage, fetch

EVERY_S = 0.15
RUNNING, QUEUED = "sglang:num_running_reqs", "sglang:num_queue_reqs"


@dataclass(frozen=True, slots=True)
class Sight:
    """What was read at one moment. Units: at is epoch seconds."""

    at: float
    running: float
    queued: float


class Witness:
    """Reads from when it is entered until it is left. Moments at which decode did not answer are left out."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="witness", daemon=True)
        self.seen: list[Sight] = []

    def __enter__(self) -> Witness:
        """Begin to look."""
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        """Look no more."""
        self._ending.set()
        self._thread.join(5)

    def _watch(self) -> None:
        url = self._stage.demo_fleet.url("decode", "/metrics")
        while not self._ending.wait(EVERY_S):
            status, text = fetch(url, timeout_s=2.0)
            running, queued = number(text, RUNNING), number(text, QUEUED)
            if status == 200 and running is not None and queued is not None:
                self.seen.append(Sight(time.time(), running, queued))


def number(text: str, family: str, labels: str = "") -> float | None:
    """The sum over the series of a family in a metrics text whose labels hold `labels`; None where there is none."""
    found = re.findall(rf"^{re.escape(family)}(?:\{{([^}}]*)\}})? ([-+0-9.e]+)$", text, re.MULTILINE)
    values = [float(value) for held, value in found if labels in held]
    return sum(values) if values else None
