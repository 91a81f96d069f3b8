"""Text of `fleet.yaml` -> Fleet, or every error at once with its line and a hint.

The text becomes YAML nodes (`fleet_checks.nodes`), the nodes become entries (`services`, `knobs`, `rules`, ...), the
entries are checked against each other (`links`).
"""

from __future__ import annotations

import hashlib

import yaml

from policies.fleet import Fleet
from policies.fleet_checks.alertmanager import read_alertmanager
from policies.fleet_checks.contracts import check_contracts, read_contracts
from policies.fleet_checks.emergency import check_emergency, read_emergency
from policies.fleet_checks.knobs import read_knobs
from policies.fleet_checks.links import check_links
from policies.fleet_checks.nodes import compose
from policies.fleet_checks.people import read_channel, read_people, read_roles
from policies.fleet_checks.problems import FleetError, Problems
from policies.fleet_checks.rules import (
    read_causes,
    read_freezes,
    read_metrics,
    read_rules,
    read_timing,
)
from policies.fleet_checks.services import read_hosts, read_restarts, read_services
from policies.fleet_checks.table import Table
from policies.fleet_checks.urls import read_url
from policies.fleet_checks.values import Reader
from policies.model import Model

__all__ = ["FleetError", "FleetReading", "read_fleet"]

top_keys = (
    "version",
    "name",
    "hosts",
    "services",
    "restarts",
    "knobs",
    "contracts",
    "metrics",
    "prometheus",
    "alertmanager",
    "causes",
    "people",
    "channel",
    "roles",
    "rules",
    "freezes",
    "emergency",
    "timing",
)


class FleetReading(Model):
    """A fleet without errors, or errors (by line) without a fleet."""

    fleet: Fleet | None
    errors: tuple[FleetError, ...] = ()


def read_fleet(text: str, file: str) -> FleetReading:
    """Read and check a fleet file. `file` is only for the messages.

    A wrong value does not hide the errors after it; only text that is no YAML ends the reading early.
    """
    problems = Problems(file)
    root = compose(text, problems)
    if root is None:
        return FleetReading(fleet=None, errors=problems.sorted())
    top = Table(Reader(problems), (), root, top_keys)
    fleet = _read(top, text)
    check_links(fleet, problems)
    check_emergency(fleet, problems)
    check_contracts(fleet, problems)
    if problems.errors:
        return FleetReading(fleet=None, errors=problems.sorted())
    return FleetReading(fleet=fleet)


def _read(top: Table, text: str) -> Fleet:
    if top.need("version", "version: 1"):
        top.word("version", ("1",), "version.unknown")
    top.need("name", "name: NAME")
    top.need("hosts", "hosts: {gpu1: {address: 192.0.2.11, user: clawback}}")
    top.need("services", "services: with one service or more")
    prometheus = top.table("prometheus", ("url",))
    hosts, services = read_hosts(top), read_services(top)
    for key in ("hosts", "services"):
        node = top.nodes.get(key)
        if isinstance(node, yaml.MappingNode) and not node.value:
            top.reader.problems.add(
                top.at(key), "list.empty", f"no {key}, expected one or more", f"add one below `{key}:`"
            )
    return Fleet(
        name=top.name("name") or "",
        hosts=hosts,
        services=services,
        restarts=read_restarts(top),
        knobs=read_knobs(top),
        contracts=read_contracts(top),
        metrics=read_metrics(top),
        causes=read_causes(top),
        prometheus_url=(read_url(prometheus, of_service=False) or None) if prometheus is not None else None,
        alertmanager=read_alertmanager(top),
        people=read_people(top),
        channel=read_channel(top),
        roles=read_roles(top),
        rules=read_rules(top),
        freezes=read_freezes(top),
        emergency=read_emergency(top),
        timing=read_timing(top),
        sha256=hashlib.sha256(text.encode("utf-8")).hexdigest(),
    )
