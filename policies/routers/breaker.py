"""A router's own counts of one worker, from its metrics: the breaker, and requests in flight."""

from __future__ import annotations

from collections.abc import Iterable
from math import nan
from typing import Literal

from policies.metrics.names import ACTIVE
from policies.metrics.samples import Scrape
from policies.routers.listed import same_worker

STATE = "smg_worker_cb_state"
Breaker = Literal["closed", "open", "half open", "removed", "unknown"]
# Source: FACTS-serving 3.3; -1 is what a removed worker is left with (sglang-router 0.3.2)
BREAKERS: dict[float, Breaker] = {0.0: "closed", 1.0: "open", 2.0: "half open", -1.0: "removed"}


def breaker_of(scrape: Scrape | None, urls: Iterable[str]) -> Breaker:
    """The breaker of a worker by the urls of its entries, as they are listed; of several ranks the worst.

    A series that is missing is not a closed breaker. Another spelling may stand there from before a removal.
    """
    series = scrape.named(STATE) if scrape is not None else ()
    told = {sample.labels.get("worker"): sample.value for sample in series}
    found: set[Breaker] = {BREAKERS.get(told.get(url, nan), "unknown") for url in urls}
    if not found:
        return "unknown"
    order: tuple[Breaker, ...] = ("open", "half open", "unknown", "removed")
    return next((word for word in order if word in found), "closed")


def in_flight_at(scrape: Scrape | None, worker: str) -> float | None:
    """Requests that the router counts at a worker; None where it counts none, which says nothing (see the package)."""
    named = scrape.named(ACTIVE) if scrape is not None else ()
    found = sum(sample.value for sample in named if same_worker(sample.labels.get("worker", ""), worker))
    return found if found > 0 else None
