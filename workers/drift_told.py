"""The slow look at drift: what is newly not as it was left on an instance is recorded once, and that it is well again.

What was recorded last of an instance is what a look is compared with, so that neither a restart nor a second worker
says anything twice. An instance on which a change is at work, or on which one ended meanwhile, is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from policies import events as e
from policies.errors import LedgerConflict
from policies.finding import Finding
from policies.line import BEGUN
from workers.drift import FleetLook, InstanceLook, fleet_drift
from workers.ledger import Ledger
from workers.line import open_changes
from workers.reserved import reserved

if TYPE_CHECKING:
    from workers.wiring import Wiring

LOG = structlog.get_logger(__name__)
RECENT = 50  # changes that may have ended during a look
SKEW_S = 10.0  # between the clocks of two that record


def drift_round(wiring: Wiring, look: Callable[[Wiring], FleetLook] = fleet_drift) -> list[str]:
    """Look at the whole fleet once; the names of what was recorded. Raises: StoreUnavailable."""
    began = wiring.clock()
    before = at_work(wiring.ledger, began)
    seen = look(wiring)
    busy = before | at_work(wiring.ledger, began)
    told: dict[str, list[e.Entry]] = {}
    for entry in wiring.ledger.index("drift"):
        if isinstance(entry.event, e.DriftSeen):
            told.setdefault(entry.event.instance, []).append(entry)
    looks = [one for one in seen.instances if one.instance not in busy]
    found = [name for one in looks if (name := _compare(wiring.ledger, one, told.get(one.instance, [])))]
    for name in found:
        wiring.doorbell.ring("narrate", "draw", name)
    return found


def at_work(ledger: Ledger, since: float) -> set[str]:
    """Instances of changes that were begun and have not ended, or ended since that moment. Units: epoch seconds."""
    changes = [change for change in open_changes(ledger) if change.state in BEGUN]
    recent = [ledger.load(entry.subject) for entry in ledger.index("changes")[-RECENT:]]
    changes += [change for change in recent if change.ended_at is not None and change.ended_at >= since - SKEW_S]
    return {instance for change in changes if change.plan is not None for instance in change.plan.services}


def _compare(ledger: Ledger, look: InstanceLook, told: list[e.Entry]) -> str | None:
    """The name under which something new was recorded."""
    now = tuple(finding for finding in look.findings if finding.effect == "refuse")
    last = told[-1].event if told else None
    before = last.found if isinstance(last, e.DriftSeen) else ()
    if _key(before) == _key(now):
        return None
    name = told[-1].subject if told else reserved(ledger, "dr", f"drift:{look.instance}")
    try:
        ledger.append(name, e.DriftSeen(instance=look.instance, found=now), expect_version=len(told))
    except LedgerConflict:
        LOG.info("drift was recorded by another worker", instance=look.instance)
        return None
    return name


def _key(found: tuple[Finding, ...]) -> list[str]:
    """What is the same in whichever order it was found or written."""
    return sorted(json.dumps(finding.model_dump(mode="json"), sort_keys=True) for finding in found)
