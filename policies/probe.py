"""A canary's latency, with the load at that moment and what canaries of this service took before."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from policies.citation import Citation
from policies.model import Model

SLOW_FACTOR = 3.0
SLOW_LEAST_S = 0.5
"""Slower than three times the median, and by half a second at least: a canary of milliseconds may well take some more.

Ours: a probe that queued in the incident took 17.9 s where canaries take 0.3 s; noise of a busy host is far below it.
"""
MOST_EARLIER = 20


class Probe(Model):
    """One canary that came back. `usual_s`: median of the `n` recorded before it; None where there is none.

    load: readings of the fleet's metrics that count requests, from around that moment.
    Units: at is epoch seconds of the host's clock at the answer.
    """

    service: str  # that it went through
    at: float
    took_s: float
    usual_s: float | None = None
    n: int = 0
    load: tuple[Citation, ...] = ()

    @property
    def slow(self) -> bool | None:
        """Whether it was slow; None where nothing was recorded to compare it with."""
        if self.usual_s is None:
            return None
        return self.took_s > max(SLOW_FACTOR * self.usual_s, self.usual_s + SLOW_LEAST_S)


def probe(service: str, at: float, took_s: float, earlier_s: Sequence[float], load: tuple[Citation, ...]) -> Probe:
    """earlier_s: what canaries took before, oldest first; the newest twenty count. Units: seconds."""
    known = list(earlier_s[-MOST_EARLIER:])
    return Probe(
        service=service, at=at, took_s=took_s, usual_s=median(known) if known else None, n=len(known), load=load
    )
