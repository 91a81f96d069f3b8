"""How long each instance took to become healthy, every time that it was recorded."""

from __future__ import annotations

from policies import events as e
from policies.fleet import Fleet
from workers.ledger import Ledger


def boots(ledger: Ledger, fleet: Fleet) -> dict[str, list[float]]:
    """Seconds from a restart's issue to healthy, by instance, oldest first.

    Raises: StoreUnavailable.
    """
    found: dict[str, list[float]] = {}
    for service in fleet.services:
        for instance in fleet.instances(service):
            events = [entry.event for entry in ledger.index(f"boot:{instance}")]
            found[instance] = [x.waited_s for x in events if isinstance(x, e.GatePassed) and x.waited_s is not None]
    return found
