"""The engine's own loop: slots, a queue, and one step after another for everything that runs."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(eq=False)
class Job:
    """A request in the loop. Units: seconds of time.monotonic()."""

    steps: int
    asked_s: float = field(default_factory=time.monotonic)
    started_s: float | None = None
    first_s: float | None = None
    done_steps: int = 0
    done: threading.Event = field(default_factory=threading.Event)


class StepLoop:
    """Continuous batching in small: at most `slots` jobs run, each step moves every one of them on by one."""

    def __init__(self, slots: int, step_s: float, on_step: Callable[[int], None]) -> None:
        self.slots = slots
        self.step_s = step_s
        self._on_step = on_step
        self._wake = threading.Condition()
        self._waiting: deque[Job] = deque()
        self._running: list[Job] = []
        self._probes: list[threading.Event] = []
        threading.Thread(target=self._run, name="steps", daemon=True).start()

    @property
    def waiting(self) -> int:
        """Jobs in the queue."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Jobs in a slot."""
        return len(self._running)

    def submit(self, steps: int) -> Job:
        """Queue a job; wait for `job.done`."""
        job = Job(steps)
        with self._wake:
            self._waiting.append(job)
            self._wake.notify()
        return job

    def probe(self, timeout_s: float) -> bool:
        """Run one internal step and say whether it came through the loop in time."""
        answered = threading.Event()
        with self._wake:
            self._probes.append(answered)
            self._wake.notify()
        return answered.wait(timeout_s)

    def _run(self) -> None:
        next_s = time.monotonic()
        while True:
            with self._wake:
                while not (self._waiting or self._running or self._probes):
                    self._wake.wait()
                    next_s = time.monotonic()
                now_s = time.monotonic()
                while self._waiting and len(self._running) < self.slots:
                    job = self._waiting.popleft()
                    job.started_s = now_s
                    self._running.append(job)
                probes, self._probes = self._probes, []
            # an absolute schedule: a late wake-up does not slow the batch down
            next_s = max(next_s + self.step_s, time.monotonic() - self.step_s)
            time.sleep(max(0.0, next_s - time.monotonic()))
            self._step(probes)

    def _step(self, probes: list[threading.Event]) -> None:
        now_s = time.monotonic()
        with self._wake:
            batch = list(self._running)
            finished: list[Job] = []
            for job in batch:
                job.done_steps += 1
                if job.first_s is None:
                    job.first_s = now_s
                if job.done_steps >= job.steps:
                    finished.append(job)
            self._running = [job for job in batch if job not in finished]
        if batch:
            self._on_step(len(batch))
        for event in [*(job.done for job in finished), *probes]:
            event.set()
