"""The fleet: hosts, services, knobs, restart orders, roles and rules, as read from `fleet.yaml`.

Models only. `policies.fleet_file` reads and checks the text; nothing here knows YAML.
Durations are seconds (the file says `25s`, `5m`, `2h`, `90d`).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from policies.addresses import ADDRESS, url_at
from policies.alertmanager import AlertmanagerEntry
from policies.deploys.strategy import DeployEntry
from policies.model import Model

type_names = ("int", "float", "str", "bool", "enum")


class Host(Model):
    """A machine reached by SSH. `manager` says which systemd owns its units."""

    name: str
    address: str
    port: int = 22
    user: str
    host_key: str | None = None  # "ssh-ed25519 AAAA..."; None: known_hosts decides
    manager: Literal["system", "user"] = "system"


class HttpCheck(Model):
    """An endpoint asked from the host itself (`from: host`)."""

    url: str
    timeout_s: float = 25.0  # Source: FACTS-serving 3.4, an engine's /health may take 20 s
    boot_s: float = 300.0  # how long a start may take before the gate fails

    @property
    def port(self) -> int:
        """TCP port of the url: the port that the service must own itself."""
        from urllib.parse import urlsplit

        parts = urlsplit(self.url)
        return parts.port or (443 if parts.scheme == "https" else 80)


class Canary(Model):
    """One generation through the service; `{nonce}` in `body` and `expect_text` is replaced by a fresh one."""

    url: str
    body: dict[str, JsonValue]
    expect_text: str
    timeout_s: float = 60.0


class Drain(Model):
    """How an instance is taken out of service before its restart, and given back after it.

    router: service whose own API does it. worker: url of an instance as the router knows it; `{address}` is its host's.
    over: what happens when the deadline is over and requests are still in flight.
    """

    router: str
    worker: str
    kind: Literal["regular", "prefill", "decode"] = "regular"
    bootstrap_port: int | None = None
    deadline_s: float = 60.0
    over: Literal["hold", "restart"] = "hold"


class RollingEntry(Model):
    """How a service with more than one instance is restarted. keep None: all but `max_unavailable`.

    watch_s: how long the first replica is watched before the others follow; require: what must hold on it then.
    """

    max_unavailable: int = 1
    keep: int | None = None
    watch_s: float = 0.0
    require: tuple[str, ...] = ()


class Service(Model):
    """A systemd unit on one host or more. `{address}` in a url stands for the address of the instance's host."""

    name: str
    on: tuple[str, ...]
    unit: str
    needs: tuple[str, ...] = ()
    health: HttpCheck
    metrics: HttpCheck | None = None
    canary: Canary | None = None
    server_info: HttpCheck | None = None  # asked for the "reported by the engine" rung of the proof
    model_info: HttpCheck | None = None  # /model_info or /v1/models: which model is served
    loads: HttpCheck | None = None  # /v1/loads or a DCGM exporter: on which accelerators
    devices: tuple[str, ...] = ()  # files that nobody else may have open when the unit is restarted
    deploy: DeployEntry | None = None  # how it gets another version
    rolling: RollingEntry = RollingEntry()
    drain: Drain | None = None

    def at(self, host: Host) -> Service:
        """The service as one host has it: `{address}` in its urls is that host's."""
        filled: dict[str, object] = {}
        for name in ("health", "metrics", "canary", "server_info", "model_info", "loads"):
            check: HttpCheck | Canary | None = getattr(self, name)
            if check is not None and ADDRESS in check.url:
                filled[name] = check.model_copy(update={"url": url_at(check.url, host.address)})
        if self.deploy is not None and ADDRESS in (self.deploy.version.http or ""):
            version = self.deploy.version
            version = version.model_copy(update={"http": url_at(version.http or "", host.address)})
            filled["deploy"] = self.deploy.model_copy(update={"version": version})
        if self.drain is not None and ADDRESS in self.drain.worker:
            filled["drain"] = self.drain.model_copy(update={"worker": url_at(self.drain.worker, host.address)})
        return self.model_copy(update=filled) if filled else self


class Reported(Model):
    """Where an engine reports a knob's value: a dotted path in the JSON of the service's `server_info`."""

    path: str


class Knob(Model):
    """A named, typed setting: an environment variable of one service or more."""

    name: str
    env: str  # of every service, else of the first one
    envs: dict[str, str] = Field(default_factory=dict)  # service -> variable, where they call it differently
    on: tuple[str, ...]  # services
    type: Literal["int", "float", "str", "bool", "enum"]
    range: tuple[float, float] | None = None  # int and float: both ends included
    values: tuple[str, ...] = ()  # enum
    pattern: str | None = None  # str: must match as a whole
    restarts: tuple[str, ...]  # names of restart orders; the first is the default
    about: str = ""
    if_guilty: str | None = None
    reported: Reported | None = None

    def variable(self, service: str) -> str:
        """What a service calls it."""
        return self.envs.get(service, self.env)

    @property
    def variables(self) -> tuple[str, ...]:
        """Every name that it has, each once."""
        return tuple(dict.fromkeys((self.env, *self.envs.values())))

    def at(self, service: str) -> Knob:
        """The knob as one service knows it."""
        return self.model_copy(update={"env": self.variable(service)}) if self.envs else self


class Contract(Model):
    """A setting that services must have alike. reported: service -> where its engine tells it in `server_info`."""

    name: str
    knob: str | None = None
    reported: dict[str, str] = Field(default_factory=dict)
    about: str = ""


class MetricQuery(Model):
    """A named query, the service it is asked of and its unit."""

    name: str
    on: str
    query: str
    unit: str


class CauseEntry(Model):
    """A catalogued cause: what must hold (`needs`) and what speaks against it (`refuted_by`)."""

    name: str
    about: str
    needs: str
    refuted_by: str | None = None


class Role(Model):
    """People: Slack user ids, and user groups by handle or id. At a terminal `Fleet.people` says who is who."""

    name: str
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class Match(Model):
    """Which changes a rule is about; None matches everything."""

    kind: Literal["knob", "deploy", "restart"] | None = None
    intent: Literal["set", "restore", "revert", "unset", "deploy", "rollback", "restart"] | None = None
    knob: str | None = None
    service: str | None = None


class EvidenceNeed(Model):
    """How much recorded evidence a change needs. Order: improves > no_worse > weak > observed."""

    metric: str
    at_least: Literal["improves", "no_worse", "weak", "observed"]
    max_age_s: float | None = None
    repeats: int = 1
    correctness: int = 0  # answers that must have been compared, none of them differing
    correctness_level: Literal[0, 1, 2, 3] = 0  # see `policies.correctness`
    override: str | None = None  # role whose people may do without, with a reason


class TicketNeed(Model):
    """A change must name its ticket. pattern: must match the id as a whole; None: any id will do."""

    pattern: str | None = None


class Rule(Model):
    """All rules that match apply together and the strictest wins; when none matches the answer is no."""

    match: Match
    ask: str | None = None  # role that may ask
    approvals: int | None = None
    by: str | None = None  # role that may approve
    expires_s: float | None = None
    evidence: EvidenceNeed | None = None
    ticket: TicketNeed | None = None
    line: int = 0  # line in the fleet file, so that a refusal can name it


class Freeze(Model):
    """A time in which nothing is changed: starts at `cron` in zone `tz` and lasts `for_s`."""

    name: str
    cron: str
    for_s: float
    tz: str = "UTC"


class Emergency(Model):
    """Who may do without an approver or in a freeze, and who answers for it: `within_s`, or it is taken back.

    evidence: whether an emergency does without recorded evidence too.
    """

    by: str
    ratify_by: str
    within_s: float
    evidence: Literal["needed", "skipped"] = "needed"


class Timing(Model):
    """Waiting times, all in seconds."""

    approval_s: float = 1800.0
    lease_s: float = 10.0
    wait_slice_s: float = 10.0  # one long poll on a host
    poll_s: float = 0.05  # on the host, while waiting
    bake_s: float = 300.0
    health_confirmations: int = 2
    reach_s: float = 15.0  # connect to a host
    scrape_s: float = 15.0  # between two scrapes of the slow tick
    drift_s: float = 300.0  # between two looks for what is not as it was left
    watch_s: float = 60.0  # between two looks for what happened outside of changes
    keep_s: float = 86400.0  # how long a recorded scrape is kept
    review_s: float = 604_800.0  # from a revert on suspicion to its review, and between reminders


class Fleet(Model):
    """A checked fleet file. `sha256` is of its bytes and is kept with every change."""

    version: Literal[1] = 1
    name: str
    hosts: dict[str, Host]
    services: dict[str, Service]
    restarts: dict[str, tuple[str, ...]]
    knobs: dict[str, Knob]
    contracts: dict[str, Contract] = Field(default_factory=dict)
    metrics: dict[str, MetricQuery] = Field(default_factory=dict)
    causes: dict[str, CauseEntry] = Field(default_factory=dict)
    prometheus_url: str | None = None
    alertmanager: AlertmanagerEntry | None = None
    people: dict[str, str] = Field(default_factory=dict)  # user name of the operating system -> Slack user id
    channel: str | None = None  # Slack channel id in which changes asked for at a terminal are told
    roles: dict[str, Role] = Field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    freezes: tuple[Freeze, ...] = ()
    emergency: Emergency | None = None
    timing: Timing = Timing()
    sha256: str = ""

    def instances(self, service: str) -> tuple[str, ...]:
        """`service@host` for every host of the service, in file order."""
        return tuple(f"{service}@{host}" for host in self.services[service].on)

    def at(self, instance: str) -> Service:
        """The service of `service@host` as that host has it: the only way to a url that can be asked."""
        service, _, host = instance.partition("@")
        return self.services[service].at(self.hosts[host])
