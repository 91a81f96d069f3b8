"""The only place where the parts are put together, once a process."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

import redis
from pydantic import SecretStr

from policies.errors import FleetFileError
from policies.fleet import Fleet
from policies.fleet_file import read_fleet
from workers.client import Client
from workers.context import Contexts
from workers.emergencies import Emergencies
from workers.hosts import Hosts
from workers.inbox import Inbox
from workers.lease import Leases
from workers.ledger import Ledger
from workers.look import Looks
from workers.measuring import Measuring
from workers.metrics.kept import Kept
from workers.metrics.recorder import Recorder
from workers.metrics.slow_tick import SlowTick
from workers.metrics.source import Metrics
from workers.planner import Planner
from workers.queue import Doorbell
from workers.reaper import sweep
from workers.shells import Shell
from workers.states import States
from workers.store import connect
from workers.turns import Turns
from workers.watch import Watch

if TYPE_CHECKING:
    from workers.alertmanager import Alertmanager

SILENCES_S = 1.0  # between two looks at what should be silenced
CLOSE_S = 2.0  # a round of scrapes that runs may end by itself for so long


@dataclass(frozen=True)
class Wiring:
    """Everything that jobs and listeners need. Hosts are connected to when they are first asked, never before."""

    fleet: Fleet
    redis: redis.Redis
    open_shell: Callable[[], Shell]
    clock: Callable[[], float] = time.time
    name: str = field(default_factory=lambda: f"{socket.gethostname()}:{os.getpid()}")

    @cached_property
    def ledger(self) -> Ledger:
        """The truth."""
        return Ledger(self.redis, self.clock)

    @cached_property
    def leases(self) -> Leases:
        """Who may act on which instance."""
        return Leases(self.redis)

    @cached_property
    def doorbell(self) -> Doorbell:
        """Rings workers."""
        return Doorbell(self.redis)

    @cached_property
    def inbox(self) -> Inbox:
        """What Slack sent, kept until it was heard."""
        return Inbox(self.redis)

    @cached_property
    def client(self) -> Client:
        """The bot's door."""
        return Client(self.ledger, self.doorbell, self.fleet, self.clock)

    @cached_property
    def shell(self) -> Shell:
        """Warm connections to hosts."""
        return self.open_shell()

    @cached_property
    def hosts(self) -> Hosts:
        """The fleet's hosts; the metrics of every look are recorded."""
        return Hosts(self.fleet, self.shell, self.recorder.seen)

    @cached_property
    def recorder(self) -> Recorder:
        """Records scrapes."""
        return Recorder(self.fleet, self.kept, lambda: self.hosts)

    @cached_property
    def kept(self) -> Kept:
        """Recorded scrapes."""
        return Kept(self.redis, keep_s=self.fleet.timing.keep_s)

    @cached_property
    def slow_tick(self) -> SlowTick:
        """Scrapes every instance now and then."""
        return SlowTick(self.redis, self.recorder, self.fleet.timing.scrape_s)

    @cached_property
    def watch(self) -> Turns:
        """Looks for what happened outside of changes, now and then."""
        watch = Watch(self.redis, self.ledger, self.fleet, lambda: self.hosts)
        return Turns(self.redis, "watch", watch.round, self.fleet.timing.watch_s)

    @cached_property
    def remeasure(self) -> Turns:
        """Judges what was said of a change once more after it was taken back."""
        from workers.remeasure import EVERY_S, Remeasure

        return Turns(self.redis, "remeasure", Remeasure(self).round, EVERY_S)

    @cached_property
    def drift(self) -> Turns:
        """Looks for drift, now and then."""
        from workers.drift_told import drift_round

        return Turns(self.redis, "drift", partial(drift_round, self), self.fleet.timing.drift_s)

    @cached_property
    def alertmanager(self) -> Alertmanager | None:
        """The Alertmanager of the fleet file, where it names one."""
        if self.fleet.alertmanager is None:
            return None
        from workers.alertmanager import Alertmanager  # only where there is one, httpx is paid for (0.1 s)

        return Alertmanager(self.fleet.alertmanager.url)

    @cached_property
    def silences(self) -> Callable[[], object]:
        """Keeps its silences, from a thread of its own; nothing where there is none."""
        if self.alertmanager is None:
            return lambda: None
        from workers.silences import Silences

        ring = partial(self.doorbell.ring, "narrate", "draw")
        keeper = Silences(self.redis, self.ledger, self.fleet, self.alertmanager, self.clock, ring)
        return Turns(self.redis, "silences", keeper.round, SILENCES_S)

    @cached_property
    def metrics(self) -> Metrics:
        """Readings, from Prometheus or from recorded scrapes."""
        prometheus = None
        if self.fleet.prometheus_url is not None:
            from workers.metrics.prometheus import Prometheus  # only where there is one, httpx is paid for (0.1 s)

            prometheus = Prometheus(self.fleet, self.fleet.prometheus_url)
        return Metrics(self.fleet, self.kept, lambda: self.recorder, prometheus)

    @cached_property
    def states(self) -> States:
        """What engines do at the moment of a look."""
        return States(self.fleet, self.metrics)

    @cached_property
    def measuring(self) -> Measuring:
        """Windows to judge causes on."""
        return Measuring(self.fleet, self.metrics, self.clock)

    @cached_property
    def planner(self) -> Planner:
        """Plans from what hosts say now."""
        return Planner(self.fleet, self.hosts, self.ledger, self.clock, self.states, self.contexts)

    @cached_property
    def contexts(self) -> Contexts:
        """What runs today, against which evidence is held."""
        return Contexts(self.fleet, self.hosts, lambda: self.metrics, self.clock)

    @cached_property
    def looks(self) -> Looks:
        """Read-only questions about hosts."""
        return Looks(self)

    @property
    def table(self) -> dict[str, Callable[[str], object]]:
        """The jobs of the workers, by the only names that a queue entry can call."""
        from workers import execute, line, prepare

        return {
            "prepare": partial(prepare.prepare, self),
            "expire": partial(prepare.expire, self),
            "line": partial(line.line, self),
            "execute": partial(execute.execute, self),
        }

    def close(self) -> None:
        """End the connections to hosts and to Prometheus, where there are any; what was seen is stored first."""
        for name in ("slow_tick", "watch", "drift", "remeasure"):
            if name in self.__dict__:
                self.__dict__[name].join(CLOSE_S)
        if "recorder" in self.__dict__:
            self.recorder.close()
        if isinstance(turns := self.__dict__.get("silences"), Turns):
            turns.join(CLOSE_S)
        if "metrics" in self.__dict__:
            self.metrics.close()
        if "shell" in self.__dict__:
            self.shell.close()

    @cached_property
    def emergencies(self) -> Emergencies:
        """Overrides that wait for a second person."""
        return Emergencies(self.ledger, self.doorbell, self.fleet, self.clock)

    def sweep(self) -> None:
        """One turn of the reaper: ring again what was lost, take over what is orphaned, end what is late."""
        sweep(self.ledger, self.leases, self.doorbell, self.clock())
        self.emergencies.turn()


def load_fleet(path: Path) -> Fleet:
    """The fleet of a file.

    Raises: FleetFileError with every error of the file.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot read the fleet file `{path}`: {error}"
        raise FleetFileError(message, hint="set CLAWBACK_FLEET to a readable utf-8 file") from error
    reading = read_fleet(text, str(path))
    if reading.fleet is None:
        lines = "\n".join(f"{err.file}:{err.line}: {err.message}" for err in reading.errors)
        raise FleetFileError(lines, hint=f"run `clawback fleet check {path}`")
    return reading.fleet


def open_wiring(
    *,
    fleet_file: Path,
    redis_url: SecretStr | str,
    ssh_keys: Sequence[Path] = (),
    ssh_agent: bool = False,
    known_hosts: Path | None = None,
) -> Wiring:
    """Read the fleet file and connect to Redis; SSH is opened when a host is first asked.

    Raises: FleetFileError, SettingsError, StoreUnavailable.
    """
    fleet = load_fleet(fleet_file)

    def shell() -> Shell:
        # Imported here: only workers that reach hosts pay for paramiko (0.1 s).
        from workers.shells.hostkeys import DEFAULT_FILES, KnownHosts
        from workers.shells.ssh import SshPool

        known = KnownHosts((known_hosts,) if known_hosts else DEFAULT_FILES)
        return SshPool(ssh_keys, agent=ssh_agent, known_hosts=known, reach_s=fleet.timing.reach_s)

    return Wiring(fleet, connect(redis_url), shell)
