"""Checks of `rolling:` and `drain:` entries across a fleet: floors that can hold, conditions and routers that exist."""

from __future__ import annotations

from policies.addresses import ADDRESS
from policies.causes.parsing import read_statement
from policies.causes.scanning import Malformed
from policies.causes.statement import metrics_of
from policies.fleet import Drain, Fleet, Service
from policies.fleet_checks.causes import check_statement
from policies.fleet_checks.problems import Path, Problems, quote


def check_rolling(fleet: Fleet, problems: Problems) -> None:
    """Record every error of a `rolling:` or `drain:` entry that needs another entry to be seen."""
    for name, service in fleet.services.items():
        path: Path = ("services", name)
        if (*path, "rolling") in problems.lines:
            _check_floor(service, (*path, "rolling"), problems)
            _check_canary(fleet, service, (*path, "rolling", "canary"), problems)
        if service.drain is not None:
            _check_drain(fleet, service, service.drain, (*path, "drain"), problems)


def _check_floor(service: Service, path: Path, problems: Problems) -> None:
    replicas, rolling = len(service.on), service.rolling
    if replicas == 1:
        problems.add(
            path,
            "rolling.one_host",
            f"{quote(service.name)} is on one host, so nothing can be taken in turn, expected two hosts or more",
            "remove rolling, or add a host to `on`",
        )
        return
    if not replicas:
        return  # reported where it was read
    if rolling.keep is not None and rolling.keep >= replicas:
        problems.add(
            (*path, "keep"),
            "rolling.keep_never_holds",
            f"{rolling.keep} of {replicas} replicas can never stay in service while one is restarted, "
            f"expected {replicas - 1} or less",
            f"write keep: {replicas - 1}",
        )
    elif rolling.max_unavailable >= replicas and rolling.keep != 0:
        problems.add(
            (*path, "max_unavailable"),
            "rolling.all_at_once",
            f"{rolling.max_unavailable} may be away at once and there are {replicas} replicas, which leaves none in "
            f"service, expected {replicas - 1} or less, or keep: 0",
            f"write max_unavailable: {replicas - 1}, or add keep: 0 where nobody needs the service meanwhile",
        )


def _check_canary(fleet: Fleet, service: Service, path: Path, problems: Problems) -> None:
    rolling = service.rolling
    if rolling.require and not rolling.watch_s:
        problems.add(
            path,
            "rolling.no_watch",
            "what is required is read at the end of the watch, and there is none, expected watch: DURATION",
            "add watch: 30s",
        )
    for i, text in enumerate(rolling.require):
        where: Path = (*path, "require", i)
        check_statement(fleet, where, text, problems)
        statement = read_statement(text)
        if isinstance(statement, Malformed):
            continue
        for metric in metrics_of(statement):
            known = fleet.metrics.get(metric.text)
            if known is None or metric.free or known.on in {"", service.name} or known.on not in fleet.services:
                continue
            problems.add(
                where,
                "rolling.require_elsewhere",
                f"{quote(metric.text)} is read on {known.on} and the first replica is one of {service.name}, "
                f"expected a metric on {service.name}",
                f"add a metric with `on: {service.name}` and the query to ask there",
            )


def _check_drain(fleet: Fleet, service: Service, drain: Drain, path: Path, problems: Problems) -> None:
    if drain.router and drain.router not in fleet.services:
        problems.unknown((*path, "router"), "drain.router", "service", drain.router, fleet.services)
    elif drain.router and not _needs(fleet, drain.router, service.name):
        problems.add(
            (*path, "router"),
            "drain.router_apart",
            f"{quote(drain.router)} does not need {quote(service.name)}, so it sends no requests there, "
            "expected a service that does",
            f"add {service.name} to services.{drain.router}.needs, or name its router",
        )
    elif drain.router and fleet.services[drain.router].metrics is None:
        problems.add(
            (*path, "router"),
            "drain.router_silent",
            f"{quote(drain.router)} has no metrics url, and only those tell whether it uses a worker, expected one",
            f'add metrics: {{url: "http://127.0.0.1:PORT/metrics", from: host}} to services.{drain.router}',
        )
    if service.metrics is None:
        problems.add(
            path,
            "drain.no_metrics",
            f"{quote(service.name)} has no metrics url, so nobody can tell when its last request has ended,"
            " expected one",
            f'add metrics: {{url: "http://127.0.0.1:PORT/metrics", from: host}} to services.{service.name}',
        )
    if drain.worker and ADDRESS not in drain.worker and len(service.on) > 1:
        problems.add(
            (*path, "worker"),
            "drain.worker_same",
            f"{quote(drain.worker)} is the same for all {len(service.on)} hosts, expected {ADDRESS} in it",
            'write e.g. worker: "http://{address}:30001"',
        )
    if drain.kind == "prefill" and drain.bootstrap_port is None:
        problems.add(
            path,
            "drain.bootstrap_missing",
            "a prefill worker is registered with its bootstrap port, expected one",
            "add bootstrap_port: 8998, as its --disaggregation-bootstrap-port says",
        )
    elif drain.kind != "prefill" and drain.bootstrap_port is not None:
        problems.add(
            (*path, "bootstrap_port"),
            "drain.bootstrap_unused",
            f"only a prefill worker has a bootstrap port and this one is {drain.kind}, expected none",
            "remove it, or write kind: prefill",
        )


def _needs(fleet: Fleet, service: str, needed: str) -> bool:
    """Whether a service needs another one, directly or through others; a circle is reported elsewhere."""
    seen: set[str] = set()
    waiting = [service]
    while waiting:
        name = waiting.pop()
        found = fleet.services.get(name)
        if found is None or name in seen:
            continue
        seen.add(name)
        if needed in found.needs:
            return True
        waiting += found.needs
    return False
