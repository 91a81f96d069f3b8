"""A booted demo fleet on which whole changes are played without chat, and what can be read from it afterwards."""

from __future__ import annotations

import shlex
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import redis

from policies import events as e
from policies.change import Change
from policies.evidence import Summary
from policies.finding import Finding
from policies.fleet import Canary, Fleet
from policies.intents import Act, Actor, Intent, RevertKnob, Where
from policies.plan import Plan
from policies.recording import typed
from sandbox.fleet.document import KNOB, KNOB_ENV
from sandbox.fleet.fleet import ROLES, DemoFleet, Engines
from sandbox.fleet.units import unit_name
from workers.client import ActAnswer
from workers.execute import execute
from workers.ledger import Ledger
from workers.prepare import prepare
from workers.shells.hostkeys import KnownHosts
from workers.shells.ssh import SshPool
from workers.store import connect
from workers.wiring import Wiring, load_fleet

ANA = Actor(id="U01ANA", roles=("engineers",))
BEN = Actor(id="U02BEN", roles=("engineers", "approvers"))
CAT = Actor(id="U03CAT", roles=("engineers", "approvers"))
HERE = Where(channel="C1")
BOOT_S = {"prefill": 0.3, "decode": 0.3, "router": 0.1}
TIMING: dict[str, str | int] = {"lease": "6s", "wait_slice": "1s"}  # a loaded machine may stand still for a while
WAIT_S = 60.0
LEASE_TOKEN = "clawback:token"


def make_fleet(folder: Path) -> DemoFleet:
    """One host; the knob is 512 in decode's unit file."""
    engines = Engines(env={"decode": {KNOB_ENV: "512"}}, drain_s=1.0)
    return DemoFleet(folder, boot_s=BOOT_S, timing=TIMING, engines=engines)


def quick(fleet: Fleet, boot_s: float = 12.0, canary: Canary | None = None, *, bake_s: float = 0.0) -> Fleet:
    """The fleet with less patience than a fleet file may ask for, and with another canary."""
    services = {}
    for name, service in fleet.services.items():
        health = service.health.model_copy(update={"boot_s": boot_s})
        probe = service.canary and (canary or service.canary)
        services[name] = service.model_copy(update={"health": health, "canary": probe})
    timing = fleet.timing.model_copy(update={"bake_s": bake_s})  # watched in tests of its own
    return fleet.model_copy(update={"services": services, "timing": timing})


Hook = Callable[[e.Event], None]
T = TypeVar("T")


class Watched(Ledger):
    """A ledger that tells before and after each append of this process."""

    def __init__(self, client: redis.Redis, clock: Callable[[], float]) -> None:
        super().__init__(client, clock)
        self.before: list[Hook] = []
        self.after: list[Hook] = []

    def append(self, subject: str, event: e.Event, *, expect_version: int, nonce: str | None = None) -> e.Entry:
        """Append between the hooks."""
        for hook in list(self.before):
            hook(event)
        entry = super().append(subject, event, expect_version=expect_version, nonce=nonce)
        for hook in list(self.after):
            hook(event)
        return entry


def wire(fleet: Fleet, url: str, pool: SshPool, name: str = "w1") -> tuple[Wiring, Watched]:
    """The parts of one worker, with a watched ledger."""
    client = connect(url)
    wiring = Wiring(fleet, client, lambda: pool, name=name)
    ledger = Watched(client, wiring.clock)
    wiring.__dict__["ledger"] = ledger
    return wiring, ledger


class Stage:
    """One test's turn on the fleet. `reset()` brings the host back to how it was booted."""

    def __init__(self, fleet: DemoFleet, url: str, pool: SshPool) -> None:
        self.fleet = fleet
        self.url = url
        self.pool = pool
        self.host = fleet.hosts["gpu1"]
        self.units = self.host.manager.units
        self.document = quick(load_fleet(fleet.fleet_yaml))
        self.w, self.ledger = wire(self.document, url, pool)
        self.marks = {role: len(fleet.events(role)) for role in ROLES}

    # --- the change ---

    def rewire(self, fleet: Fleet) -> None:
        """Go on with another fleet file."""
        self.document = fleet
        self.w.redis.close()
        self.w, self.ledger = wire(fleet, self.url, self.pool)

    def ask(self, intent: Intent | None = None, actor: Actor = ANA) -> Change:
        """Ask for a change and prepare it."""
        intent = intent or RevertKnob(knob=KNOB, because="multi-round hang")
        change_id = self.w.client.request(intent, actor, HERE, said="said", normalised="read")
        prepare(self.w, change_id)
        return self.w.client.change(change_id)

    def confirm(self, change: Change, order: str = "decode-only", actor: Actor = BEN) -> ActAnswer:
        """Click confirm on the plan as it is shown."""
        digest = plan_of(change, order).digest
        return self.w.client.act(Act(kind="confirm", change=change.id, order=order, digest=digest), actor)

    def approved(self, order: str = "decode-only", intent: Intent | None = None) -> Change:
        """A change that was asked for and confirmed."""
        answer = self.confirm(self.ask(intent), order)
        assert answer.finding.code == "click.ok"
        return answer.change

    def say(self, change: Change, kind: str, actor: Actor = BEN) -> Finding:
        """Abort, undo, retry or keep."""
        return self.w.client.act(Act.model_validate({"kind": kind, "change": change.id}), actor).finding

    def execute(self, change: Change) -> Change:
        """One turn of a worker."""
        execute(self.w, change.id)
        return self.w.client.change(change.id)

    def free(self) -> None:
        """Wait until nobody holds a lease; that of a process which was killed is given up at once, as a sweep does."""
        instances = [f"{role}@gpu1" for role in ROLES]

        def nobody_holds() -> bool:
            self.w.leases.give_up_dead(instances)
            return not any(self.w.leases.holder(instance) for instance in instances)

        until(nobody_holds, "the lease does not end")

    def give_evidence(self, value: str) -> None:
        """Record that the value was measured."""
        points = ({"concurrency": 64, "ratio": 1.128},)
        summary = Summary.model_validate({"knob": KNOB, "value": value, "points": points})
        self.w.client.record_evidence(typed(summary, "typed", "0" * 64), by="U01ANA")

    def once(self, kind: str, index: int | None, act: Callable[[], object], *, before: bool = False) -> None:
        """Do something right after (or before) the first event of this kind (and step index) is recorded."""
        hooks = self.ledger.before if before else self.ledger.after

        def hook(event: e.Event) -> None:
            if event.kind == kind and (index is None or getattr(event, "index", None) == index):
                hooks.remove(hook)
                act()

        hooks.append(hook)

    # --- what is recorded ---

    def events(self, change: Change) -> list[e.Event]:
        """All events."""
        return [entry.event for entry in self.w.client.entries(change.id)]

    def kinds(self, change: Change) -> list[str]:
        """Their kinds."""
        return [event.kind for event in self.events(change)]

    def codes(self, change: Change) -> set[str]:
        """Every finding code that was recorded."""
        found: set[str] = set()
        for event in self.events(change):
            verdict = getattr(event, "verdict", None)
            for finding in (*getattr(event, "findings", ()), *(verdict.findings if verdict else ())):
                found.add(finding.code)
        return found

    def last(self, change: Change, kind: type[T]) -> T:
        """The last event of a kind."""
        return [event for event in self.events(change) if isinstance(event, kind)][-1]

    # --- the services ---

    def clock(self, role: str, event: str) -> list[float]:
        """When this happened to a service since the test began, by its own clock file."""
        lines = self.fleet.events(role)[self.marks[role] :]
        return [float(str(line["time"])) for line in lines if line["event"] == event]

    def starts(self) -> tuple[int, int, int]:
        """How often prefill, decode and router were started since the test began."""
        prefill, decode, router = (len(self.clock(role, "started")) for role in ROLES)
        return prefill, decode, router

    def pid(self, role: str) -> int:
        """The main process."""
        return int(self.fleet.show(role, "MainPID")["MainPID"])

    def environ(self, role: str = "decode") -> dict[str, str]:
        """The environment of the main process, from /proc."""
        raw = Path(f"/proc/{self.pid(role)}/environ").read_bytes().decode()
        return dict(item.split("=", 1) for item in raw.split("\0") if "=" in item)

    def systemctl(self, *words: str) -> str:
        """As an operator by hand."""
        return self.host.manager.systemctl(*words)

    def restart_by_hand(self, role: str) -> None:
        """An operator restarts a unit and waits until it is well."""
        self.systemctl("restart", unit_name(role))
        self.fleet.wait_healthy()

    def dropin(self, role: str = "decode", name: str = "zz-clawback.conf") -> Path:
        """A drop-in of a unit."""
        return self.units / f"{unit_name(role)}.d" / name

    def write(self, role: str, name: str, text: str, *, reload: bool = True) -> Path:
        """Put a drop-in there by hand."""
        path = self.dropin(role, name)
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        if reload:
            self.systemctl("daemon-reload")
        return path

    def guard(self, role: str, check: str, more: str = "Restart=no") -> None:
        """Have a unit run `check` in a shell before its engine; the check may exit."""
        lines = (self.units / unit_name(role)).read_text().splitlines()
        command = next(line for line in lines if line.startswith("ExecStart=")).removeprefix("ExecStart=")
        script = shlex.quote(f"{check.replace('$', '$$')}; exec {command}")
        self.write(role, "50-guard.conf", f"[Service]\n{more}\nExecStart=\nExecStart=/bin/sh -c {script}\n")

    # --- the end ---

    def close(self) -> None:
        """Close the store; the pool is shared."""
        self.w.redis.close()

    def reset(self, pristine: dict[str, str]) -> None:
        """Files as they were at boot, every unit well, nothing remembered on the host."""
        names = [unit_name(role) for role in ROLES]
        states = self.systemctl("show", *names, "-p", "ActiveState", "-p", "NRestarts").strip().split("\n\n")
        well = {"ActiveState=active", "NRestarts=0"}
        dirty = [
            unit_name(role)
            for role, state in zip(ROLES, states, strict=True)
            if set(state.split()) != well or self._edited(role, pristine)
        ]
        if self.fleet.releases.names != self.fleet.releases.first and unit_name("decode") not in dirty:
            dirty.append(unit_name("decode"))
        self.fleet.releases.reset()
        for role in ROLES:
            (self.units / unit_name(role)).write_text(pristine[role])
            shutil.rmtree(self.units / f"{unit_name(role)}.d", ignore_errors=True)
        shutil.rmtree(self.host.manager.home / ".local", ignore_errors=True)
        self.systemctl("daemon-reload")
        self.systemctl("reset-failed", *names)  # also forgets the starts that count towards the start limit
        if dirty:
            self.systemctl("restart", *dirty)
        self.fleet.wait_healthy()

    def _edited(self, role: str, pristine: dict[str, str]) -> bool:
        folder = self.units / f"{unit_name(role)}.d"
        others = [p for p in folder.glob("*") if p.name != "zz-clawback.conf"] if folder.exists() else []
        return bool(others) or (self.units / unit_name(role)).read_text() != pristine[role]


def plan_of(change: Change, order: str = "decode-only") -> Plan:
    """The plan of an order."""
    assert change.planned is not None
    return next(plan for plan in change.planned.plans if plan.order == order)


def at_once(*acts: Callable[[], object]) -> list[object]:
    """Run them in threads that begin together; gives what each returned."""
    barrier = threading.Barrier(len(acts))
    results: list[object] = [None] * len(acts)

    def run(number: int, act: Callable[[], object]) -> None:
        barrier.wait(WAIT_S)
        results[number] = act()

    threads = [threading.Thread(target=run, args=item) for item in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S * 2)
        assert not thread.is_alive()
    return results


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait for something that has to come."""
    deadline = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


class SharedPool(SshPool):
    """The connections of many tests: who closes the shell of a wiring leaves them open for the others."""

    def close(self) -> None:
        """Nothing."""

    def end(self) -> None:
        """Close them."""
        super().close()


@contextmanager
def pool_of(fleet: DemoFleet) -> Iterator[SshPool]:
    """Warm connections with the demo's key."""
    pool = SharedPool((fleet.ssh_key,), known_hosts=KnownHosts(()))
    try:
        yield pool
    finally:
        pool.end()


def lookalike(wiring: Wiring, name: str) -> Wiring:
    """A second worker on the same fleet."""
    return replace(wiring, redis=wiring.redis, name=name)


PYTHON = sys.executable
