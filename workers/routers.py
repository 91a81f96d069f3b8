"""Reading a router from its own host: whom it lists, its breakers, and what it counts at a worker."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from policies import events as e
from policies.facts import HttpAnswer
from policies.finding import Finding
from policies.fleet import Fleet
from policies.load import oldest_over_s
from policies.metrics.samples import Scrape, answered_scrape
from policies.plan import AdmitStep, DrainStep, Registration
from policies.routers.listed import Listed, Taken, read_workers, same_worker
from workers.executors.answers import METRICS_MAX_BYTES, HttpAsk
from workers.hosts import Hosts

LIST_S = 10.0  # Source: sglang-router 0.3.2 answers /workers in under a millisecond; a loaded machine takes longer


@dataclass(frozen=True, slots=True)
class Seen:
    """One look at a router. listed: its workers, or why they are not known. Units: at is its host's epoch seconds."""

    listed: tuple[Listed, ...] | Finding
    metrics: Scrape | None
    oldest_over_s: float | None  # of all its requests, whichever worker has them
    at: float | None


class Routers:
    """Looks at the routers of one fleet; changes nothing."""

    def __init__(self, fleet: Fleet, hosts: Hosts) -> None:
        self._fleet = fleet
        self._hosts = hosts

    def unit(self, router: str) -> str:
        """The unit of a router."""
        return self._fleet.services[router.partition("@")[0]].unit

    def look(self, at: Registration) -> Seen:
        """Whom it lists now, and its metrics where the fleet file says where they are.

        Raises: HostUnreachable, HostAnswerLost, HostRefused.
        """
        asks = [
            HttpAsk(id="workers", url=f"{at.api.rstrip('/')}/workers", timeout_s=LIST_S, max_bytes=METRICS_MAX_BYTES)
        ]
        asks += self._metrics(at.router)
        answers = self._ask(at.router, asks)
        listed = read_workers(at.router, answers.get("workers"))
        found = answers.get("metrics")
        metrics = answered_scrape(at.router, found)
        oldest = oldest_over_s(found.body) if found is not None and found.status == 200 else None
        when = answers["workers"].at if "workers" in answers else None
        return Seen(listed, metrics if isinstance(metrics, Scrape) else None, oldest, when)

    def job(self, at: Registration, worker_id: str) -> HttpAnswer | None:
        """What the router says of one registration that was asked for.

        Raises: HostUnreachable, HostAnswerLost, HostRefused.
        """
        ask = HttpAsk(id="job", url=f"{at.api.rstrip('/')}/workers/{worker_id}", timeout_s=LIST_S)
        return self._ask(at.router, [ask]).get("job")

    def scrape(self, instance: str) -> Scrape | None:
        """An engine's metrics alone; None where it has none or they were not answered.

        Its health check is not asked: that is a request too, and it would be counted.

        Raises: HostUnreachable, HostAnswerLost, HostRefused.
        """
        asks = self._metrics(instance)
        found = answered_scrape(instance, self._ask(instance, asks).get("metrics") if asks else None)
        return found if isinstance(found, Scrape) else None

    def _metrics(self, instance: str) -> list[HttpAsk]:
        metrics = self._fleet.at(instance).metrics
        if metrics is None:
            return []
        return [HttpAsk(id="metrics", url=metrics.url, timeout_s=metrics.timeout_s, max_bytes=METRICS_MAX_BYTES)]

    def _ask(self, instance: str, asks: list[HttpAsk]) -> dict[str, HttpAnswer]:
        return self._hosts.observe([], [], {instance.partition("@")[2]: asks}).probes


def taken_of(entries: Iterable[e.Entry], step: DrainStep | AdmitStep) -> tuple[tuple[Taken, ...], float]:
    """What the ledger says that this change took out of an instance's routers, and when it was given back last.

    Of several drains the last one counts. Units: epoch seconds by the router's host; 0.0: it was not given back.
    """
    instance, admitted_at = f"{step.service}@{step.host}", 0.0
    taken: tuple[Taken, ...] = ()
    for event in (entry.event for entry in entries):
        if isinstance(event, e.StepDone) and event.instance == instance:
            if event.step == "drain":
                taken = event.found
            elif event.step == "admit":
                admitted_at = event.host_at
    return taken, admitted_at


def was_registered(taken: Iterable[Taken], at: Registration) -> bool:
    """Whether a router is to have the instance: it had it at the drain, or no drain was there to look."""
    of_router = [one for one in taken if one.router == at.router and same_worker(one.worker, at.worker)]
    return not of_router or any(one.found is not None for one in of_router)
