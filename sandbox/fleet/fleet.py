"""The demo fleet: hosts with real managers and SSH servers, engines as services under them, one `fleet.yaml`."""

from __future__ import annotations

import json
import shutil
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import asyncssh
from pydantic import JsonValue

from policies.errors import SettingsError
from sandbox.fleet import misbehaviour
from sandbox.fleet.document import HostEntry, People, Where, fleet_text
from sandbox.fleet.layout import ROLES, Layout
from sandbox.fleet.manager import UserManager
from sandbox.fleet.programs import Engines, Programs
from sandbox.fleet.releases import DEPLOYED, EngineReleases
from sandbox.fleet.sshd import SshHost, SshLoop
from sandbox.fleet.units import unit_name, unit_text
from sandbox.ports import hold_everywhere, let_go, number

__all__ = ["BOOT_S", "ROLES", "DemoFleet", "DemoHost", "Engines"]

BOOT_S = {"prefill": 1.0, "decode": 1.0, "router": 0.2}
HEALTHY_SLACK_S = 30.0
SOURCE = Path(__file__).resolve().parent / "engine"


@dataclass(frozen=True, slots=True)
class DemoHost:
    """One host of the fleet. `releases` are those that lie on it."""

    name: str
    manager: UserManager
    ssh: SshHost
    releases: EngineReleases


class DemoFleet:
    """Boots everything below `folder`; `stop()` (or leaving the `with` block) removes every trace of it.

    hosts: one to three, over which the roles are spread, or a layout with replicas. An instance is named `role@host`;
    a role alone names its first one. more: further keys of services in the fleet file.
    Without `wait` the services still boot when the constructor returns; `fleet_yaml` is there.
    Raises: SettingsError where a real manager cannot run; nothing is left behind then.
    """

    def __init__(
        self,
        folder: Path,
        *,
        boot_s: Mapping[str, float] | None = None,
        hosts: int | Layout = 1,
        people: People | None = None,
        timing: Mapping[str, str | int] | None = None,
        engines: Engines | None = None,
        more: Mapping[str, Mapping[str, JsonValue]] | None = None,
        wait: bool = True,
    ) -> None:
        self.layout = Layout.spread(hosts) if isinstance(hosts, int) else hosts
        self.folder = folder.resolve()
        self.fleet_yaml = self.folder / "fleet.yaml"
        self.ssh_key = self.folder / "ssh_key"
        self.boot_s = {**BOOT_S, **(boot_s or {})}
        self.engines = engines or Engines()
        self.hosts: dict[str, DemoHost] = {}
        self.ports: dict[str, int] = {}
        self.metrics_ports: dict[str, int] = {}  # of roles whose metrics have a port of their own
        self._loop: SshLoop | None = None
        self._troubles: dict[str, misbehaviour.Trouble] = {}
        self._held: list[socket.socket] = []
        try:
            self._build(people or People(), timing or {}, more or {})
            if wait:
                self.wait_healthy()
        except BaseException:
            self.stop()
            raise

    def __enter__(self) -> DemoFleet:
        """The booted fleet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()

    @property
    def releases(self) -> EngineReleases:
        """The releases on the first host that has some."""
        return self.host(DEPLOYED).releases

    def url(self, where: str, path: str = "") -> str:
        """Address of an engine."""
        role = self.layout.of(where)[0]
        port = self.metrics_ports.get(role, self.ports[role]) if path == "/metrics" else self.ports[role]
        return self.layout.url(where, port, path)

    def host(self, where: str) -> DemoHost:
        """The host that an instance runs on."""
        return self.hosts[self.layout.of(where)[1]]

    def events(self, where: str) -> list[dict[str, JsonValue]]:
        """What the engine itself wrote down: event, time, pid, knob (as in its environment), more."""
        path = self._events(where)
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def log(self, where: str) -> Path:
        """Standard output and error of an engine."""
        return self.folder / "log" / f"{self.layout.name(where)}.log"

    def show(self, where: str, *properties: str) -> dict[str, str]:
        """`systemctl show` of an instance's unit."""
        return self.host(where).manager.show(unit_name(self.layout.of(where)[0]), *properties)

    def wait_healthy(self, timeout_s: float | None = None) -> None:
        """Wait until every engine's health and the router's readiness answer 200, and the router knows all as well.

        Raises: SettingsError with what the last answer was.
        """
        limit_s = timeout_s if timeout_s is not None else max(self.boot_s.values()) + HEALTHY_SLACK_S
        deadline = time.monotonic() + limit_s
        for instance in self.layout.instances:
            while (said := self.status(instance)) != "200" or (said := self._lacks(instance)):
                if time.monotonic() > deadline:
                    named = self.layout.name(instance)
                    raise SettingsError(
                        f"{named} is not healthy after {limit_s:g} s: {said}", hint=f"see {self.log(instance)}"
                    )
                time.sleep(0.02)

    def status(self, where: str) -> str:
        """What the health endpoint of an instance answers now: a status, or why there is none."""
        return _status(self.url(where, "/readiness" if self.layout.of(where)[0] == "router" else "/health"))

    def _lacks(self, where: str) -> str:
        """What a ready router lacks of its engines; an empty text where it lacks none, and for an engine."""
        if self.layout.of(where)[0] != "router":
            return ""
        engines = len(self.layout.instances) - len(self.layout.on["router"])
        status, text = _asked(self.url(where, "/readiness"))
        found = json.loads(text).get("healthy_workers") if status == "200" else 0
        return "" if found == engines else f"it knows {found} of {engines} engines as well"

    def misbehave(self, where: str, kind: str) -> None:
        """Have an instance misbehave, as `misbehaviour.KINDS` lists; one kind at a time.

        Raises: SettingsError for an unknown instance or kind, or one that misbehaves already.
        """
        name = self._behaving(where)
        if name is None or name in self._troubles:
            raise SettingsError(f"'{where}' is no role that behaves now", hint=f"roles: {', '.join(self.layout.on)}")
        self._troubles[name] = misbehaviour.misbehave(self, where, kind)

    def behave(self, where: str) -> None:
        """Put an instance back, and wait until the fleet is well. Does nothing when it behaves."""
        trouble = self._troubles.pop(self._behaving(where) or "", None)
        if trouble is not None:
            misbehaviour.behave(self, where, trouble)

    def stop(self) -> None:
        """End every process, remove every cgroup, close every socket. The folder stays for reading."""
        with ThreadPoolExecutor(len(self.layout.hosts)) as pool:
            list(pool.map(lambda host: host.manager.stop(), self.hosts.values()))
        for trouble in self._troubles.values():
            for process in trouble.processes:
                process.wait()  # ended with its host
        for host in self.hosts.values():
            host.ssh.stop()
        if self._loop is not None:
            self._loop.stop()
        let_go(self._held)

    def _behaving(self, where: str) -> str | None:
        try:
            return self.layout.name(where)
        except SettingsError:
            return None

    def _build(
        self, people: People, timing: Mapping[str, str | int], more: Mapping[str, Mapping[str, JsonValue]]
    ) -> None:
        for path in (self.folder, self.folder / "log", self.folder / "clock"):
            path.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        public = self._write_client_key()
        shutil.copytree(
            SOURCE, self.folder / "lib" / "engine", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
        )
        self.ports = {role: self._hold(role) for role in ROLES}  # theirs also while they restart
        if self.engines.real_router:
            self.metrics_ports = {"router": self._hold("router")}
        self._loop = loop = SshLoop()
        with ThreadPoolExecutor(len(self.layout.hosts)) as pool:
            coming = [pool.submit(self._boot, name, loop, public) for name in self.layout.hosts]
        for one in coming:
            one.result()
        self.hosts = {name: self.hosts[name] for name in self.layout.hosts}
        where = Where(self.layout, self.ports, self.metrics_ports)
        entries = [
            HostEntry(h.name, h.ssh.port, h.ssh.host_key, h.ssh.user, h.ssh.address) for h in self.hosts.values()
        ]
        deployed = {DEPLOYED: str(self._deployed)}
        text = fleet_text(entries, where, self.boot_s, people, timing, deployed, more)
        self.fleet_yaml.write_text(text, encoding="utf-8")
        programs = Programs(self.engines, where, self.boot_s, frozenset({DEPLOYED}))
        for instance in self.layout.instances:
            self._write_unit(instance, programs)
        with ThreadPoolExecutor(len(self.hosts)) as pool:
            list(pool.map(self._start, self.hosts))

    @property
    def _deployed(self) -> Path:
        """Where the releases lie, as each host sees it."""
        return self.folder / "srv" / DEPLOYED

    def _hold(self, role: str) -> int:
        addresses = [self.layout.addresses[host] for host in self.layout.on[role]]
        held = hold_everywhere(list(dict.fromkeys(addresses)))
        self._held += held
        return number(held[0])

    def _boot(self, name: str, loop: SshLoop, public: str) -> None:
        """One host: its folders, its manager, its SSH server."""
        srv = self.folder / "srv"
        its = self.folder / name / "srv" if self.layout.replicas else srv
        manager = UserManager(self.folder / name, name, {srv: its} if self.layout.replicas else None)
        ssh = SshHost(loop, manager.wrap, public, self.layout.addresses[name])
        releases = EngineReleases(its / DEPLOYED, SOURCE, self.engines.version)
        self.hosts[name] = DemoHost(name, manager, ssh, releases)
        if name in self.layout.on[DEPLOYED]:
            releases.reset()
        manager.boot()
        ssh.start()

    def _start(self, host: str) -> None:
        manager = self.hosts[host].manager
        manager.systemctl("daemon-reload")
        for role in ROLES:
            if host in self.layout.on[role]:
                manager.systemctl("start", "--no-block", unit_name(role))

    def _write_client_key(self) -> str:
        key = asyncssh.generate_private_key("ssh-ed25519", comment="demo")
        self.ssh_key.touch(mode=0o600)
        self.ssh_key.write_bytes(key.export_private_key())
        return str(key.export_public_key().decode("ascii"))

    def _events(self, where: str) -> Path:
        return self.folder / "clock" / f"{self.layout.name(where)}.jsonl"

    def _write_unit(self, instance: str, programs: Programs) -> None:
        role, _ = self.layout.of(instance)
        released = role in programs.released
        text = unit_text(
            role,
            programs.command(instance, self._events(instance)),
            library=self._deployed / "current" if released else self.folder / "lib",
            log=self.log(instance),
            environment=programs.environment(role),
            notify=self.engines.notify and not programs.silent(role),
            boot_s=self.boot_s[role],
            drain_s=self.engines.drain_s,
            released=released,
        )
        (self.host(instance).manager.units / unit_name(role)).write_text(text, encoding="utf-8")


def _status(url: str) -> str:
    status, text = _asked(url)
    return status if status == "200" else f"{status} {text}".strip()


def _asked(url: str) -> tuple[str, str]:
    """Status and text of an answer; why there is none instead of a status."""
    try:
        with urllib.request.urlopen(url, timeout=25.0) as answer:
            return str(answer.status), answer.read(300).decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        with error:
            return str(error.code), error.read(300).decode("utf-8", "replace")
    except OSError as error:
        return str(error), ""
