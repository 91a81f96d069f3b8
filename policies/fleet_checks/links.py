"""Checks across a fleet: names that must exist, orders that must agree, things that must not collide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from policies.addresses import may_meet
from policies.causes.scanning import WORDS
from policies.causes.statement import state_words
from policies.fleet import Fleet, Knob, Rule
from policies.fleet_checks.alertmanager import check_alertmanager
from policies.fleet_checks.causes import check_causes
from policies.fleet_checks.deploy_links import check_deploys
from policies.fleet_checks.metrics import check_queries
from policies.fleet_checks.problems import Path, Problems, listed, quote
from policies.fleet_checks.rolling_links import check_rolling

cause_words = WORDS | {*state_words, "state", "still", "moving", "steady", "true", "false"}
"""Words of statements about causes, and those kept for them: no metric may be called so."""

knob_intents = frozenset({"set", "restore", "revert", "unset"})
no_evidence = {
    "revert": "going back must stay possible",
    "rollback": "going back must stay possible",
    "deploy": "evidence is recorded of knobs",
    "restart": "evidence is recorded of knobs",
}


def check_links(fleet: Fleet, problems: Problems) -> None:
    """Record every error that needs more than one entry to be seen. Empty names were reported before."""
    for name, service in fleet.services.items():
        path: Path = ("services", name)
        _exist(problems, (*path, "on"), service.on, Kind("service.host", "host", fleet.hosts))
        _exist(problems, (*path, "needs"), service.needs, Kind("service.needs", "service", fleet.services))
    _check_cycles(fleet, problems)
    _check_collisions(fleet, problems)
    _check_orders(fleet, problems)
    for knob in fleet.knobs.values():
        _check_knob(fleet, knob, problems)
    _check_shared_variables(fleet, problems)
    check_deploys(fleet, problems)
    check_rolling(fleet, problems)
    check_alertmanager(fleet, problems)
    _check_metrics(fleet, problems)
    check_queries(fleet, problems)
    check_causes(fleet, problems)
    for index, rule in enumerate(fleet.rules):
        _check_rule(fleet, rule, ("rules", index), problems)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of name: the code of its absence, its noun, and those that exist."""

    code: str
    noun: str
    known: Mapping[str, object]


def _exist(problems: Problems, path: Path, names: Iterable[str], kind: Kind) -> None:
    for i, name in enumerate(names):
        if name and name not in kind.known:
            problems.unknown((*path, i), kind.code, kind.noun, name, kind.known)


def _reachable(fleet: Fleet, start: str) -> Iterator[str]:
    """Every service that `start` needs, directly or not."""
    seen: set[str] = set()
    waiting = list(fleet.services[start].needs) if start in fleet.services else []
    while waiting:
        name = waiting.pop()
        if name in seen or name not in fleet.services:
            continue
        seen.add(name)
        yield name
        waiting.extend(fleet.services[name].needs)


def _check_cycles(fleet: Fleet, problems: Problems) -> None:
    told: set[frozenset[str]] = set()
    for name in fleet.services:
        loop = _loop(fleet, name)
        if loop is None or frozenset(loop) in told:
            continue
        told.add(frozenset(loop))
        position = fleet.services[name].needs.index(loop[1])
        problems.add(
            ("services", name, "needs", position),
            "service.cycle",
            f"{' needs '.join(loop)}: no order can satisfy that, expected `needs` without a circle",
            f"remove {quote(loop[1])} here, or the last `needs` of the circle",
        )


def _loop(fleet: Fleet, start: str) -> list[str] | None:
    """The shortest way from a service back to itself along `needs`."""
    came_from: dict[str, str] = {}
    waiting = [start]
    for name in waiting:
        for needed in fleet.services[name].needs:
            if needed == start:
                way = [start, name]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1]
            if needed in fleet.services and needed not in came_from:
                came_from[needed] = name
                waiting.append(needed)
    return None


def _check_collisions(fleet: Fleet, problems: Problems) -> None:
    units: dict[tuple[str, str], str] = {}
    ports: dict[tuple[str, int], list[tuple[str, str]]] = {}
    for name, service in fleet.services.items():
        for host in service.on:
            other = units.setdefault((host, service.unit), name)
            if service.unit and other != name:
                problems.add(
                    ("services", name, "unit"),
                    "service.unit_taken",
                    f"{quote(service.unit)} on {host} is already service {quote(other)}, expected one service a unit",
                    "give each service its own unit, or put it on another host",
                )
            if not service.health.url:
                continue
            url = service.at(fleet.hosts[host]).health.url if host in fleet.hosts else service.health.url
            port = service.health.port
            others = ports.setdefault((host, port), [])
            other = next((other for other, its in others if other != name and may_meet(its, url)), name)
            others.append((name, url))
            if other != name:
                problems.add(
                    ("services", name, "health", "url"),
                    "service.port_taken",
                    f"port {port} on {host} is already checked for service {quote(other)}, "
                    "expected a port that this service owns itself",
                    "write the port that this unit listens on",
                )


def _check_orders(fleet: Fleet, problems: Problems) -> None:
    below = {name: frozenset(_reachable(fleet, name)) for name in fleet.services}
    for order, services in fleet.restarts.items():
        path: Path = ("restarts", order)
        _exist(problems, path, services, Kind("restart.service", "service", fleet.services))
        for i, name in enumerate(services):
            late = [other for other in services[i + 1 :] if other in below.get(name, ())]
            circle = [other for other in late if name in below[other]]
            if late and not circle:
                problems.add(
                    (*path, i),
                    "restart.order",
                    f"{quote(name)} comes before {listed(late)}, which it needs, expected it after",
                    f"move {quote(name)} behind {quote(late[-1])}",
                )


def _check_knob(fleet: Fleet, knob: Knob, problems: Problems) -> None:
    path: Path = ("knobs", knob.name)
    _exist(problems, (*path, "on"), knob.on, Kind("knob.service", "service", fleet.services))
    _exist(problems, (*path, "restarts"), knob.restarts, Kind("knob.restart", "restart order", fleet.restarts))
    for i, order in enumerate(knob.restarts):
        services = fleet.restarts.get(order)
        if not services:
            continue
        missed = [name for name in knob.on if name in fleet.services and name not in services]
        if missed:
            problems.add(
                (*path, "restarts", i),
                "knob.restart_misses",
                f"{quote(order)} does not restart {listed(missed)}, where this knob is read, "
                "expected an order with every service of the knob",
                f"add {listed(missed)} to restarts.{order}, or remove {quote(order)} here",
            )
    without = [n for n in knob.on if n in fleet.services and fleet.services[n].server_info is None]
    if knob.reported is not None and without:
        problems.add(
            (*path, "reported"),
            "knob.no_server_info",
            f"{listed(without)} has no server_info to read it from, expected the endpoint",
            'add server_info: {url: "http://127.0.0.1:PORT/server_info", from: host} to the service',
        )


def _check_shared_variables(fleet: Fleet, problems: Problems) -> None:
    owners: dict[tuple[str, str], str] = {}
    for name, knob in fleet.knobs.items():
        for service in knob.on:
            variable = knob.variable(service)
            other = owners.setdefault((service, variable), name)
            if variable and other != name:
                problems.add(
                    ("knobs", name, "env"),
                    "knob.env_taken",
                    f"{quote(variable)} on {service} is already knob {quote(other)}, expected one knob a variable",
                    "remove one of the two knobs",
                )


def _check_metrics(fleet: Fleet, problems: Problems) -> None:
    for name, metric in fleet.metrics.items():
        path: Path = ("metrics", name)
        if name in cause_words:
            message = f"{quote(name)} is a word of cause expressions, expected another name"
            problems.add(path, "metric.reserved", message, f"rename it, e.g. {name}_s")
        if not metric.on:
            continue
        service = fleet.services.get(metric.on)
        if service is None:
            problems.unknown((*path, "on"), "metric.service", "service", metric.on, fleet.services)
        elif service.metrics is None and fleet.prometheus_url is None:
            problems.add(
                (*path, "on"),
                "metric.no_source",
                f"service {quote(metric.on)} has no metrics url and there is no prometheus, expected one of the two",
                'add metrics: {url: "http://127.0.0.1:PORT/metrics", from: host} to the service',
            )


def _check_rule(fleet: Fleet, rule: Rule, path: Path, problems: Problems) -> None:
    match = rule.match
    override = rule.evidence.override if rule.evidence is not None else None
    for key, role in ((("ask",), rule.ask), (("by",), rule.by), (("evidence", "override"), override)):
        if role and role not in fleet.roles:
            problems.unknown((*path, *key), "rule.role", "role", role, fleet.roles)
    if match.knob and match.knob not in fleet.knobs:
        problems.unknown((*path, "match", "knob"), "rule.knob", "knob", match.knob, fleet.knobs)
    if match.service and match.service not in fleet.services:
        problems.unknown((*path, "match", "service"), "rule.service", "service", match.service, fleet.services)
    _check_match(fleet, rule, path, problems)
    by = fleet.roles.get(rule.by or "")
    if by is not None and not by.groups and rule.approvals and len(by.users) < rule.approvals:
        problems.add(
            (*path, "approvals"),
            "rule.too_few",
            f"{rule.approvals} approvals from a role of {len(by.users)} can never be reached, expected a larger role",
            f"add users to roles.{rule.by}, or lower approvals",
        )
    if rule.evidence is not None and (match.intent in no_evidence or match.kind in no_evidence):
        what = match.intent if match.intent in no_evidence else match.kind
        problems.add(
            (*path, "evidence"),
            "rule.evidence_never_applies",
            f"evidence rules never apply to {what}: {no_evidence[str(what)]}, expected no evidence here",
            "remove evidence, or match another intent",
        )


def _check_match(fleet: Fleet, rule: Rule, path: Path, problems: Problems) -> None:
    match = rule.match
    kind = "knob" if match.intent in knob_intents else "deploy" if match.intent == "rollback" else match.intent
    knob = fleet.knobs.get(match.knob or "")
    reason = ""
    if match.kind and kind and kind != match.kind:
        reason = f"intent {match.intent} is of kind {kind}, not {match.kind}"
    elif match.knob and (match.kind or kind or "knob") != "knob":
        reason = f"a {match.kind or kind} has no knob"
    elif knob is not None and match.service in fleet.services and match.service not in knob.on:
        reason = f"knob {knob.name} is not on {match.service}"
    if reason:
        problems.add(
            (*path, "match"),
            "rule.never_matches",
            f"nothing can match: {reason}, expected keys that fit together",
            "remove one of the keys",
        )
