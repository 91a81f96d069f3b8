"""What a deploy or rollback comes down to: which REF on which instances by which orders, or why there is none."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from policies.deploys.history import Deployment, Standing, rollback_to
from policies.deploys.strategy import DeployEntry, Releases, pattern, sound_ref
from policies.finding import Finding
from policies.fleet import Fleet
from policies.intents import DeployIntent, Rollback


@dataclass(frozen=True, slots=True)
class DeployGoal:
    """`word` is what rules match on. `instances` are service@host. proven: what says so of the REF of a rollback."""

    word: Literal["deploy", "rollback"]
    service: str
    entry: DeployEntry
    ref: str
    instances: tuple[str, ...]
    orders: tuple[str, ...]
    proven: Standing | None = None


def entry_of(intent: DeployIntent, fleet: Fleet) -> DeployEntry | Finding:
    """How the service is deployed; or that it is unknown, or has no other version, or not that order."""
    service = fleet.services.get(intent.service)
    values: dict[str, str | int | float | None] = {"service": intent.service}
    if service is None:
        values["known"] = ", ".join(fleet.services)
        return Finding(code="deploy.no-such-service", effect="refuse", values=values)
    if service.deploy is None:
        values["known"] = ", ".join(name for name, other in fleet.services.items() if other.deploy) or None
        return Finding(code="deploy.not-declared", effect="refuse", values=values)
    if intent.order is not None and intent.order not in service.deploy.restarts:
        values |= {"order": intent.order, "orders": ", ".join(service.deploy.restarts)}
        return Finding(code="deploy.no-such-order", effect="refuse", values=values)
    return service.deploy


def deploy_goal(
    intent: DeployIntent,
    entry: DeployEntry,
    fleet: Fleet,
    history: Sequence[Deployment],
    now: Mapping[str, str | None],
) -> DeployGoal | Finding:
    """The goal. history: newest first. now: the version of each instance, as far as it is known."""
    instances = fleet.instances(intent.service)
    orders = entry.restarts if intent.order is None else (intent.order,)
    if isinstance(intent, Rollback):
        running = {ref for ref in now.values() if ref is not None}
        found = rollback_to(intent.service, history, running)
        if isinstance(found, Finding):
            return found
        return DeployGoal("rollback", intent.service, entry, found.ref, instances, orders, found)
    return ref_problem(intent.ref, entry) or DeployGoal("deploy", intent.service, entry, intent.ref, instances, orders)


def ref_problem(ref: str, entry: DeployEntry) -> Finding | None:
    """Why a text can be no REF of this service."""
    wanted = pattern(entry.strategy)
    reserved = (entry.strategy.current, entry.strategy.manifest) if isinstance(entry.strategy, Releases) else ()
    values: dict[str, str | int | float | None] = {"ref": ref[:200], "pattern": wanted}
    if not sound_ref(ref) or ref in reserved or re.fullmatch(wanted, ref) is None:
        return Finding(code="deploy.bad-ref", effect="refuse", values=values)
    if entry.version.of(ref) is None:
        values["pattern"] = entry.version.part
        return Finding(code="deploy.no-version-in-ref", effect="refuse", values=values)
    return None
