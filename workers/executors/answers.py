"""What is asked of the host helper and what it answers, typed. `policies.facts` holds what was observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field, JsonValue

from policies.facts import HostFacts, HttpAnswer, Incarnation, PortOwner
from policies.fleet import Service
from policies.model import Model

KIB = 1024
HEALTH_MAX_BYTES = 4 * KIB
# Source: FACTS-serving, /metrics of an engine with many ranks is a few hundred KiB of text
METRICS_MAX_BYTES = 4 * KIB * KIB
INFO_MAX_BYTES = KIB * KIB


class HttpAsk(Model):
    """One HTTP exchange that the host is asked to make. `body` is sent as JSON."""

    id: str
    url: str
    method: Literal["GET", "POST"] = "GET"
    body: JsonValue = Field(default=None, serialization_alias="json")
    timeout_s: float = 25.0
    max_bytes: int = 64 * KIB


class UnitAsk(Model):
    """One unit to look at, with the variables to look for in its processes."""

    service: str
    unit: str
    port: int | None = None
    variables: tuple[str, ...] = ()
    http: tuple[HttpAsk, ...] = ()
    devices: tuple[str, ...] = ()  # files whose holders are looked for
    log_lines: int = 0  # so many from the end of the unit's log
    log_since: float | None = None  # none older than this, by the host's clock


class Observed(Model):
    """The answer of `observe`: the asked units, and the probes beside them in the order asked."""

    facts: HostFacts
    http: tuple[HttpAnswer, ...]


class Written(Model):
    """The answer of `write`. A sha256 is None where the drop-in did not or does not exist."""

    unit: str
    path: str
    already: bool  # the same step had written it before
    sha256_before: str | None
    sha256_after: str | None
    dropins: tuple[str, ...]  # as the manager has loaded them now
    need_daemon_reload: bool
    at: float


class Issued(Model):
    """The answer of `restart`. `already`: this step had been issued before and nothing was done now."""

    unit: str
    before: Incarnation  # when the restart was issued
    current: Incarnation  # now; as `before` unless `already`
    already: bool
    state: Literal["intended", "issued"]  # intended: an earlier call ended before it could say that systemd was asked
    at: float


class Since(Model):
    """When each condition of readiness first held, in the host's epoch seconds; None: not yet."""

    new_incarnation_at: float | None
    port_owned_at: float | None
    first_200_at: float | None
    ready_at: float | None


class Failure(Model):
    """How a life of the unit ended. code: 1 exited, 2 or 3 ended by a signal."""

    result: str
    code: int | None
    status: int | None


class Waited(Model):
    """The answer of `wait` after readiness, a failure, or the end of the slice (`waiting`)."""

    unit: str
    state: Literal["ready", "waiting", "failed", "other-incarnation", "foreign-port-owner"]
    incarnation: Incarnation
    active_state: str
    sub_state: str
    result: str
    n_restarts: int | None  # since our restart that ended `before`
    n_restarts_shown: int | None = None  # as systemd counts
    exec_main_status: int | None
    exec_main_code: int | None = None
    failed: Failure | None = None  # the first life since `before` that ended badly
    port: PortOwner | None
    health: HttpAnswer | None
    since: Since
    at: float

    @property
    def ended(self) -> Failure:
        """The first life that ended badly, else what systemd shows now."""
        return self.failed or Failure(result=self.result, code=self.exec_main_code, status=self.exec_main_status)


class ActRecord(Model):
    """One act that the host remembers. Incarnations are given for a restart, path and sha256 for a write."""

    verb: Literal["write", "restart", "switch", "prune", "command", "workers"]
    change: str
    step: str
    token: int
    state: Literal["intended", "written", "done", "issued", "failed"]
    at: float
    before: Incarnation | None = None
    after: Incarnation | None = None  # the life that is there now, None while it is the one from before
    n_restarts: int | None = None  # as systemd had counted when a restart was asked for
    path: str | None = None
    sha256_before: str | None = None
    sha256_after: str | None = None
    ref_before: str | None = None  # of a switch
    ref_after: str | None = None
    argv_sha256: str | None = None  # of a command
    status: int | None = None
    note: str | None = None  # of workers: what the router knew of the worker, as JSON


class Fenced(Model):
    """The answer of `fence`: lower tokens are refused from now on, and this is what was done until now."""

    unit: str
    token: int
    previous_token: int
    incarnation: Incarnation
    records: tuple[ActRecord, ...]


@dataclass(frozen=True, slots=True)
class LogAsk:
    """So many lines from the end of a unit's log. since: none older, by the host's clock."""

    lines: int
    since: float | None = None


def unit_ask(
    service: Service, variables: tuple[str, ...] = (), log: LogAsk | None = None, *, context: bool = False
) -> UnitAsk:
    """What to ask about a service: its unit, its port, its endpoints and its devices.

    context: also what tells whether evidence applies, the model and the accelerators.
    """
    http = [
        HttpAsk(id="health", url=service.health.url, timeout_s=service.health.timeout_s, max_bytes=HEALTH_MAX_BYTES)
    ]
    if service.metrics is not None:
        metrics = service.metrics
        http.append(HttpAsk(id="metrics", url=metrics.url, timeout_s=metrics.timeout_s, max_bytes=METRICS_MAX_BYTES))
    if service.server_info is not None:
        info = service.server_info
        http.append(HttpAsk(id="server_info", url=info.url, timeout_s=info.timeout_s, max_bytes=INFO_MAX_BYTES))
    for name, check in (("model_info", service.model_info), ("loads", service.loads)) if context else ():
        if check is not None:
            http.append(HttpAsk(id=name, url=check.url, timeout_s=check.timeout_s, max_bytes=INFO_MAX_BYTES))
    return UnitAsk(
        service=service.name,
        unit=service.unit,
        port=service.health.port,
        variables=variables,
        http=tuple(http),
        devices=service.devices,
        log_lines=log.lines if log is not None else 0,
        log_since=log.since if log is not None else None,
    )
