"""What the ledger tells of a service's deploys: read backwards from the newest, as far as anybody needs."""

from __future__ import annotations

from policies.deploys.history import Deployment, deployment_of
from policies.events import Succeeded
from workers.ledger import Ledger

MOST = 200  # deploys of one service that are looked at; older versions are not proven good any more


def history(ledger: Ledger, service: str) -> list[Deployment]:
    """Deploys and rollbacks of a service that were carried out, the newest first."""
    asked = ledger.index(f"deploys:{service}")[-MOST:]
    found = (deployment_of(ledger.load(entry.subject)) for entry in reversed(asked))
    return sorted((one for one in found if one is not None), key=lambda one: one.at, reverse=True)


def deployed(ledger: Ledger, service: str) -> dict[str, str | None]:
    """The version that each instance got last, as far as changes tell: `desired` for a deploy."""
    found: dict[str, str | None] = {}
    for entry in ledger.index(f"version:{service}"):
        if isinstance(entry.event, Succeeded):
            found |= entry.event.now
    return found
