"""A router whose health check says that its own process is up, and nothing of its workers."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from policies.finding import Finding
from policies.preflight.look import Look

# Source: FACTS-serving 3.4, a gateway answers these with 200 for as long as its process runs
ALWAYS_200 = frozenset({"/health", "/liveness"})
FAMILIES = ("smg_", "sgl_router_")
COMMANDS = ("sglang_router", "sgl-router", "smg", "sgl-model-gateway")


def check(look: Look) -> Iterator[Finding]:
    """Only where metrics or the command line show that it is such a gateway; an engine's /health is another thing."""
    url = look.service.health.url
    path = urlsplit(url).path.rstrip("/")
    if look.service.needs and path in ALWAYS_200 and _is_gateway(look):
        yield look.finding("plan.router-health-says-nothing", url=url, needs=", ".join(look.service.needs))


def _is_gateway(look: Look) -> bool:
    metrics = next((a.body for a in look.unit.http if a.id == "metrics" and a.status == 200), "")
    if any(line.startswith(FAMILIES) for line in metrics.splitlines()):
        return True
    return any(name in word for word in look.unit.exec_start for name in COMMANDS)
