"""What is started for each role of the demo: the stand-in engines, and the real router where it is wanted."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.fleet.document import Where
from sandbox.fleet.units import PYTHON

# the shortest times that the real router takes: whole seconds
CHECK_S = 1
CHECKS_TO_RETURN = 1
CHECKS_TO_DROP = 2
BREAKER_S = 3  # an open breaker is tried again after so long; the gateway: 60 s
# the real router looks for the tokenizer of each model that it hears of; the sandbox leaves the machine for nothing
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_ENDPOINT": "http://127.0.0.1:9"}


@dataclass(frozen=True, slots=True)
class Engines:
    """What the engines are told. `env` holds variables per role, e.g. the knob that decode starts with."""

    max_running: int = 53  # Source: the story, 53 requests ran while the probe waited
    token_s: float = 0.02
    drain_s: float = 3.0
    notify: bool = False
    children: str = "renamed,plain"
    version: str = "0.5.23"
    env: Mapping[str, Mapping[str, str]] | None = None
    real_router: bool = False  # sglang-router itself; else the small stand-in, which starts within 0.2 s


@dataclass(frozen=True, slots=True)
class Programs:
    """The argument lists of a fleet's services."""

    engines: Engines
    where: Where
    boot_s: Mapping[str, float]
    released: frozenset[str] = field(default_factory=frozenset)  # roles whose release says their version

    def command(self, instance: str, events: Path) -> list[str]:
        """The argument list of one instance. events: where a stand-in writes down what it does."""
        role, host = self.where.layout.of(instance)
        if self.silent(role):
            return self._real_router(host)
        told: dict[str, str | float] = {
            "host": self.where.layout.addresses[host],
            "port": self.where.ports[role],
            "boot-s": self.boot_s[role],
            "drain-s": self.engines.drain_s,
            "events": str(events),
            "children": self.engines.children,
            "token-s": self.engines.token_s if role == "decode" else self.engines.token_s / 4,
            "max-running": self.engines.max_running,
            "version": self.engines.version,
        }
        if role == "router":
            told |= {kind: ",".join(self.workers(kind)) for kind in ("prefill", "decode")}
        if role in self.released:
            del told["version"]
        return [PYTHON, "-s", "-B", "-m", "engine", role, *(f"--{k}={v}" for k, v in told.items() if v != "")]

    def environment(self, role: str) -> dict[str, str]:
        """Variables of a role's units."""
        told = dict((self.engines.env or {}).get(role, {}))
        return {**told, **OFFLINE} if role == "router" and self.engines.real_router else told

    def silent(self, role: str) -> bool:
        """Whether its program tells a service manager nothing."""
        return role == "router" and self.engines.real_router

    def workers(self, kind: str) -> list[str]:
        """The addresses of every engine of a kind, as a router knows them."""
        layout = self.where.layout
        return [layout.url(f"{kind}@{host}", self.where.ports[kind]) for host in layout.on[kind]]

    def _real_router(self, host: str) -> list[str]:
        """Prefill meets decode at prefill's own port: the stand-ins have no port beside it for that."""
        address = self.where.layout.addresses[host]
        argv = [sys.executable, "-m", "sglang_router.launch_router", "--pd-disaggregation"]
        for url in self.workers("prefill"):
            argv += ["--prefill", url, str(self.where.ports["prefill"])]
        for url in self.workers("decode"):
            argv += ["--decode", url]
        told = {
            "host": address,
            "port": self.where.ports["router"],
            "prometheus-host": address,
            "prometheus-port": self.where.metrics["router"],
            "policy": "round_robin",
            "health-check-interval-secs": CHECK_S,
            "health-check-timeout-secs": 2,
            "health-success-threshold": CHECKS_TO_RETURN,
            "health-failure-threshold": CHECKS_TO_DROP,
            "worker-startup-check-interval": CHECK_S,
            "cb-timeout-duration-secs": BREAKER_S,
            "shutdown-grace-period-secs": max(1, round(self.engines.drain_s)),
            "log-level": "warn",
        }
        return [*argv, *(word for name, value in told.items() for word in (f"--{name}", str(value)))]
