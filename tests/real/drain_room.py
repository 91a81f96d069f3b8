"""A router and small engines, a host with their units, and workers that drain: as much of a change as a drain needs."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from policies import events as e
from policies.events import Entry
from policies.finding import Finding
from policies.fleet import Fleet, Host, HttpCheck, Service
from policies.plan import AdmitStep, DrainStep, Registration
from policies.routers.listed import Taken, matching
from tests.real.router_server import RealRouter, SmallEngine, until
from tests.workers.lab_host import LabHost
from workers.drains import Drains
from workers.enlisting import Enlisting
from workers.gatekeeper import Gatekeeper
from workers.hosts import Hosts
from workers.routers import Routers
from workers.shells.local import LocalShell

ROUTER = "router@gpu1"


class LabShell(LocalShell):
    """Commands on the lab's host."""

    def __init__(self, lab: LabHost) -> None:
        super().__init__()
        self._lab = lab

    def _start(self, host: Host, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        return super()._start(host, self._lab.manager.wrap(argv))


@dataclass
class Turn:
    """A worker's lease: its tokens, and whether it still holds."""

    tokens: Mapping[str, int]
    checks: int = 0

    def check(self) -> None:
        self.checks += 1


@dataclass
class Room:
    """One router, its engines by service, and the entries of the change that is played."""

    lab: LabHost
    router: RealRouter
    engines: dict[str, SmallEngine]
    kinds: dict[str, str]
    ports: dict[str, int] = field(default_factory=dict)  # bootstrap ports
    entries: list[Entry] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shell = LabShell(self.lab)
        host = Host(name="gpu1", address="127.0.0.1", user="x", manager="user")
        services = {
            name: Service(
                name=name,
                on=("gpu1",),
                unit=f"{name}.service",
                health=HttpCheck(url=f"{engine.url}/health"),
                metrics=HttpCheck(url=f"{engine.url}/metrics"),
            )
            for name, engine in self.engines.items()
        }
        services["router"] = Service(
            name="router",
            on=("gpu1",),
            unit="router.service",
            needs=tuple(self.engines),
            health=HttpCheck(url=f"{self.router.url}/readiness"),
            metrics=HttpCheck(url=self.router.metrics_url),
        )
        for name in services:
            self.lab.unit(f"{name}.service", "ExecStart=/usr/bin/sleep 600", reload=False)
        self.lab.manager.systemctl("daemon-reload")
        self.lab.manager.systemctl("start", *(f"{name}.service" for name in services))
        self.fleet = Fleet(
            name="lab",
            hosts={"gpu1": host},
            services=services,
            restarts={"all": tuple(services)},
            knobs={},
            roles={},
            rules=(),
            sha256="0" * 64,
        )
        self.hosts = Hosts(self.fleet, self.shell)

    def fresh(self) -> None:
        """Nothing remembered, everybody registered and nothing held."""
        self.entries.clear()
        shutil.rmtree(self.lab.manager.home / ".local", ignore_errors=True)
        for name, engine in self.engines.items():
            engine.release.set()
            engine.seen.clear()
            engine.finished = engine.cut = 0
            if engine.url not in {worker["url"] for worker in self.router.workers()}:
                self.router.ask("POST", "/workers", self.registration(name))
        self.router.serve(list(self.engines.values()))
        for engine in self.engines.values():
            engine.release.clear()

    def registration(self, service: str) -> dict[str, object]:
        """What registers an engine by hand."""
        body: dict[str, object] = {"url": self.engines[service].url, "worker_type": self.kinds[service]}
        return body | ({"bootstrap_port": self.ports[service]} if service in self.ports else {})

    def worker(self, token: int = 1, first: int = 1) -> Drains:
        """A worker's turn with this token."""
        lease = Turn({f"{name}@gpu1": token for name in self.fleet.services})
        firsts = {f"{name}@gpu1": first for name in self.fleet.services}
        routers = Routers(self.fleet, self.hosts)
        enlisting = Enlisting(routers, self.hosts, lease, "C-1", firsts, lambda: list(self.entries))  # type: ignore[arg-type]  # of a lease a drain asks no more
        return Drains(enlisting)

    def at(self, service: str, **more: object) -> tuple[Registration, ...]:
        fields: dict[str, object] = {"router": ROUTER, "api": self.router.url, "worker": self.engines[service].url}
        fields |= {"kind": self.kinds[service], "bootstrap_port": self.ports.get(service), **more}
        return (Registration.model_validate(fields),)

    def drain(self, service: str, deadline_s: float = 20.0, over: str = "hold", **more: object) -> DrainStep:
        step = {"host": "gpu1", "service": service, "unit": f"{service}.service", "at": self.at(service, **more)}
        return DrainStep.model_validate({**step, "deadline_s": deadline_s, "over": over})

    def admit(self, service: str, **more: object) -> AdmitStep:
        step = {"host": "gpu1", "service": service, "unit": f"{service}.service", "at": self.at(service, **more)}
        return AdmitStep.model_validate(step)

    def tell(self, event: e.Event) -> e.Event:
        """The ledger has it."""
        number = len(self.entries) + 1
        self.entries.append(
            Entry.model_construct(seq=number, subject="C-1", version=number, at=0.0, prev="", hash="", event=event)
        )
        return event

    def taken_out(self, service: str) -> None:
        """As a drain leaves it: out of the router, and the ledger knows how it was in."""
        at = self.at(service)[0]
        seen = Routers(self.fleet, self.hosts).look(at).listed
        assert not isinstance(seen, Finding)
        (found,) = matching(seen, at.worker)
        self.router.ask("DELETE", f"/workers/{found.id}")
        until(lambda: not self.listed(service), "it is not taken out")
        taken = Taken(router=ROUTER, worker=at.worker, found=found)
        where = {"part": "do", "index": 0, "step": "drain", "instance": f"{service}@gpu1", "host_at": 1.0}
        self.tell(e.StepDone.model_validate({**where, "found": (taken,)}))

    def gates(self) -> Gatekeeper:
        return Gatekeeper(self.fleet, self.hosts, lambda: None)

    def listed(self, service: str) -> list[dict[str, object]]:
        """The engine as the router lists it now."""
        return [worker for worker in self.router.workers() if worker["url"].rstrip("/") == self.engines[service].url]
