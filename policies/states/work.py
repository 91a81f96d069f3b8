"""What one scrape says of the work that an engine has: each reading is none, some or not known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from policies.citation import Citation
from policies.metrics.engine import Engine, Number, Role
from policies.metrics.names import PROGRESS, RUNNING, WAITING
from policies.metrics.samples import Scrape

roles: tuple[Role, ...] = get_args(Role)
Amount = Literal["none", "some", "unknown"]
ROUTER = "router_in_flight"
HTTP_ACTIVE = "http_active"
PD_QUEUES = "pd_queues"
family = re.compile(r"\b(?:sglang|vllm):([A-Za-z0-9_]+)")


@dataclass(frozen=True, slots=True)
class Work:
    """The readings of one moment by name.

    own: of the engine. router: of what stands before it; None where nothing does, empty where it was not read.
    """

    scrape: Scrape
    own: dict[str, Number]
    router: dict[str, tuple[Scrape, Number]] | None

    @property
    def has_own(self) -> bool:
        """Whether some reading of the engine says that there is work."""
        return any(amount(number) == "some" for number in self.own.values())

    @property
    def own_options(self) -> tuple[bool, ...]:
        """Whether the engine has work, as far as its readings leave it open."""
        if self.has_own:
            return (True,)
        return (True, False) if any(amount(number) == "unknown" for number in self.own.values()) else (False,)

    @property
    def at_router(self) -> Amount:
        """What the routers say together."""
        amounts = [amount(number) for _, number in (self.router or {}).values()]
        return "some" if "some" in amounts else "unknown" if "unknown" in amounts or self.router == {} else "none"

    def unknown(self) -> tuple[str, ...]:
        """Readings that do not say."""
        own = [name for name, number in self.own.items() if amount(number) == "unknown"]
        return (*own, *([ROUTER] if self.at_router == "unknown" else []))

    def citations(self) -> tuple[Citation, ...]:
        """Every reading that there is."""
        routers = [(scrape, number) for scrape, number in (self.router or {}).values()]
        found = [(self.scrape, number) for number in self.own.values()]
        return tuple(
            Citation(
                query=number.query,
                value=number.value,
                unit=number.unit,
                time=scrape.at,
                source=scrape.source,
                name=name_of(number.query, number.name),
            )
            for scrape, number in (*found, *routers)
            if number.value is not None
        )


def work_of(scrape: Scrape, routers: Sequence[Scrape | None] | None, role: Role | None) -> Work:
    """The work that one scrape of an engine, and those of the routers before it, tell of.

    routers: None where no router stands before the engine; a router that was not scraped is None in it.
    role: of the engine, where it does not say so itself.
    """
    engine = Engine(scrape)
    kind = engine.role or role or role_of(scrape)
    own = {"running": engine.running, "queued": engine.queued, HTTP_ACTIVE: engine.http_active}
    own |= {number.name: number for number in engine.pd_queues(kind)}
    if kind is None:  # it may be one half of a pair, whose queues would have to be empty too
        own[PD_QUEUES] = Number(PD_QUEUES, "", "requests", None)
    if routers is None:
        return Work(scrape, own, None)
    seen = [router for router in routers if router is not None]
    told = {f"{ROUTER} {router.instance}": (router, Engine(router).router_in_flight) for router in seen}
    return Work(scrape, own, told if len(seen) == len(routers) else {})


def role_of(scrape: Scrape) -> Role | None:
    """The role by every family that tells `engine_type`; of several, one that has all of a pair's queues."""
    sglang = [sample for sample in scrape.samples if sample.name.startswith("sglang:")]
    types = {sample.labels["engine_type"] for sample in sglang if "engine_type" in sample.labels}
    if len(types) > 1:
        return "dynamic"
    told = next((role for role in roles if role in types), None)
    vllm = not sglang and any(sample.name.startswith("vllm:") for sample in scrape.samples)
    return "unified" if vllm else told


def is_engine(scrape: Scrape) -> bool:
    """Whether an engine answered: it tells of running requests, or makes progress."""
    names = {sample.name for sample in scrape.samples}
    return bool(names & {*RUNNING, *WAITING, *PROGRESS})


def amount(number: Number) -> Amount:
    """Nothing only where every rank says so, something only where every rank does."""
    known = bounds(number)
    if known is None:
        return "unknown"
    least, most = known
    return "none" if most == 0 else "some" if least > 0 else "unknown"


def bounds(number: Number) -> tuple[float, float] | None:
    """The least and the greatest that it may be; None where it is not known."""
    if number.value is None:
        return None
    return (number.value if number.least is None else number.least), number.value


def name_of(query: str, otherwise: str) -> str:
    """The family that a query reads, without its engine's prefix; the name of the reading where there are several."""
    found = set(family.findall(query))
    return found.pop() if len(found) == 1 else otherwise
