"""The demo fleet: hosts with real managers and SSH servers, engines as services under them, one `fleet.yaml`."""

from __future__ import annotations

import json
import shutil
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import asyncssh
from pydantic import JsonValue

from policies.errors import SettingsError
from sandbox.fleet import misbehaviour
from sandbox.fleet.document import HostEntry, People, fleet_text
from sandbox.fleet.manager import UserManager
from sandbox.fleet.releases import DEPLOYED, EngineReleases
from sandbox.fleet.sshd import SshHost, SshLoop
from sandbox.fleet.units import unit_name, unit_text
from sandbox.ports import hold_port, let_go, number

ROLES = ("prefill", "decode", "router")
BOOT_S = {"prefill": 1.0, "decode": 1.0, "router": 0.2}
HEALTHY_SLACK_S = 30.0
SOURCE = Path(__file__).resolve().parent / "engine"


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


@dataclass(frozen=True, slots=True)
class DemoHost:
    """One host of the fleet."""

    name: str
    manager: UserManager
    ssh: SshHost


class DemoFleet:
    """Boots everything below `folder`; `stop()` (or leaving the `with` block) removes every trace of it.

    One to three hosts: roles are spread over them, because all share one loopback interface.
    Without `wait` the services still boot when the constructor returns; `fleet_yaml` is there.
    Raises: SettingsError where a real manager cannot run; nothing is left behind then.
    """

    def __init__(
        self,
        folder: Path,
        *,
        boot_s: Mapping[str, float] | None = None,
        hosts: int = 1,
        people: People | None = None,
        timing: Mapping[str, str | int] | None = None,
        engines: Engines | None = None,
        wait: bool = True,
    ) -> None:
        if not 1 <= hosts <= len(ROLES):
            raise SettingsError(f"{hosts} demo hosts, expected 1 to {len(ROLES)}", hint="each role runs on one host")
        self.folder = folder.resolve()
        self.fleet_yaml = self.folder / "fleet.yaml"
        self.ssh_key = self.folder / "ssh_key"
        self.boot_s = {**BOOT_S, **(boot_s or {})}
        self.engines = engines or Engines()
        self.hosts: dict[str, DemoHost] = {}
        self.placed = {role: f"gpu{index % hosts + 1}" for index, role in enumerate(ROLES)}
        self.ports: dict[str, int] = {}
        self._loop: SshLoop | None = None
        self._troubles: dict[str, misbehaviour.Trouble] = {}
        self._held: list[socket.socket] = []
        try:
            self._build(hosts, people or People(), timing or {})
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

    def url(self, role: str, path: str = "") -> str:
        """Address of a role's engine."""
        return f"http://127.0.0.1:{self.ports[role]}{path}"

    def host(self, role: str) -> DemoHost:
        """The host that a role runs on."""
        return self.hosts[self.placed[role]]

    def events(self, role: str) -> list[dict[str, JsonValue]]:
        """What the engine itself wrote down: event, time, pid, knob (as in its environment), more."""
        path = self._events(role)
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def log(self, role: str) -> Path:
        """Standard output and error of a role's engine."""
        return self.folder / "log" / f"{role}.log"

    def show(self, role: str, *properties: str) -> dict[str, str]:
        """`systemctl show` of a role's unit."""
        return self.host(role).manager.show(unit_name(role), *properties)

    def wait_healthy(self, timeout_s: float | None = None) -> None:
        """Wait until both engines and the router's readiness answer 200.

        Raises: SettingsError with what the last answer was.
        """
        limit_s = timeout_s if timeout_s is not None else max(self.boot_s.values()) + HEALTHY_SLACK_S
        deadline = time.monotonic() + limit_s
        for role, path in (("prefill", "/health"), ("decode", "/health"), ("router", "/readiness")):
            while (said := _status(self.url(role, path))) != "200":
                if time.monotonic() > deadline:
                    raise SettingsError(
                        f"{role} is not healthy after {limit_s:g} s: {said}", hint=f"see {self.log(role)}"
                    )
                time.sleep(0.02)

    def status(self, role: str) -> str:
        """What the role's health endpoint answers now: a status, or why there is none."""
        return _status(self.url(role, "/readiness" if role == "router" else "/health"))

    def misbehave(self, role: str, kind: str) -> None:
        """Have a role misbehave, as `misbehaviour.KINDS` lists; one kind at a time.

        Raises: SettingsError for an unknown role or kind, or a role that misbehaves already.
        """
        if role not in self.ports or role in self._troubles:
            raise SettingsError(f"'{role}' is no role that behaves now", hint=f"roles: {', '.join(self.ports)}")
        self._troubles[role] = misbehaviour.misbehave(self, role, kind)

    def behave(self, role: str) -> None:
        """Put a role back, and wait until the fleet is well. Does nothing when it behaves."""
        trouble = self._troubles.pop(role, None)
        if trouble is not None:
            misbehaviour.behave(self, role, trouble)

    def stop(self) -> None:
        """End every process, remove every cgroup, close every socket. The folder stays for reading."""
        for host in self.hosts.values():
            host.manager.stop()
        for trouble in self._troubles.values():
            for process in trouble.processes:
                process.wait()  # ended with its host
        for host in self.hosts.values():
            host.ssh.stop()
        if self._loop is not None:
            self._loop.stop()
        let_go(self._held)

    def _build(self, count: int, people: People, timing: Mapping[str, str | int]) -> None:
        for path in (self.folder, self.folder / "log", self.folder / "clock"):
            path.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        public = self._write_client_key()
        shutil.copytree(
            SOURCE, self.folder / "lib" / "engine", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True
        )
        self._held = [hold_port() for _ in ROLES]  # theirs also while they restart
        self.ports = {role: number(held) for role, held in zip(ROLES, self._held, strict=True)}
        self.releases = EngineReleases(self.folder / "srv" / DEPLOYED, SOURCE, self.engines.version)
        self._loop = SshLoop()
        for place in range(1, count + 1):
            manager = UserManager(self.folder / f"gpu{place}", f"gpu{place}")
            ssh = SshHost(self._loop, manager.wrap, public)
            self.hosts[manager.name] = DemoHost(manager.name, manager, ssh)
            manager.boot()
            ssh.start()
        for role in ROLES:
            self._write_unit(role)
        entries = [HostEntry(h.name, h.ssh.port, h.ssh.host_key, h.ssh.user) for h in self.hosts.values()]
        deployed = {DEPLOYED: str(self.releases.path)}
        text = fleet_text(entries, self.placed, self.ports, self.boot_s, people, timing, deployed)
        self.fleet_yaml.write_text(text, encoding="utf-8")
        for host in self.hosts.values():
            host.manager.systemctl("daemon-reload")
        for role in ROLES:
            self.host(role).manager.systemctl("start", "--no-block", unit_name(role))

    def _write_client_key(self) -> str:
        key = asyncssh.generate_private_key("ssh-ed25519", comment="demo")
        self.ssh_key.touch(mode=0o600)
        self.ssh_key.write_bytes(key.export_private_key())
        return str(key.export_public_key().decode("ascii"))

    def _events(self, role: str) -> Path:
        return self.folder / "clock" / f"{role}.jsonl"

    def _write_unit(self, role: str) -> None:
        told: dict[str, str | float] = {
            "port": self.ports[role],
            "boot-s": self.boot_s[role],
            "drain-s": self.engines.drain_s,
            "events": str(self._events(role)),
            "children": self.engines.children,
            "token-s": self.engines.token_s if role == "decode" else self.engines.token_s / 4,
            "max-running": self.engines.max_running,
            "version": self.engines.version,
        }
        if role == "router":
            told |= {"prefill": self.url("prefill"), "decode": self.url("decode")}
        released = role == DEPLOYED
        if released:
            del told["version"]  # the release says it
        text = unit_text(
            role,
            [f"--{name}={value}" for name, value in told.items() if value != ""],
            library=self.releases.current if released else self.folder / "lib",
            log=self.log(role),
            environment=(self.engines.env or {}).get(role, {}),
            notify=self.engines.notify,
            boot_s=self.boot_s[role],
            drain_s=self.engines.drain_s,
            released=released,
        )
        (self.host(role).manager.units / unit_name(role)).write_text(text, encoding="utf-8")


def _status(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=25.0) as answer:
            return str(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return f"{error.code} {error.read(300).decode('utf-8', 'replace')}"
    except OSError as error:
        return str(error)
