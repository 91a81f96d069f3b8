"""`contracts:` of a fleet file: settings that services must have alike."""

from __future__ import annotations

import yaml

from policies.fleet import Contract, Fleet
from policies.fleet_checks.knobs import reported_form
from policies.fleet_checks.problems import Path, Problems, listed, quote
from policies.fleet_checks.table import Table


def read_contracts(top: Table) -> dict[str, Contract]:
    """`page-size: {knob: PAGE_SIZE, reported: {prefill: page_size, decode: page_size}}`."""
    contracts = {}
    for entry in top.named("contracts", "contract"):
        table = entry.table(top.reader, ("knob", "reported", "about"))
        if isinstance(entry.node, yaml.MappingNode) and not {"knob", "reported"} & set(table.nodes):
            message = "the contract names nothing that must agree, expected knob, reported or both"
            table.reader.problems.add(entry.path, "contract.empty", message, "add knob: NAME")
        sides = table.named("reported", "service")
        paths = {one.name: table.reader.matching(one.path, one.node, reported_form) for one in sides}
        contracts[entry.name] = Contract(
            name=entry.name, knob=table.name("knob"), reported=paths, about=table.text("about") or ""
        )
    return contracts


def check_contracts(fleet: Fleet, problems: Problems) -> None:
    """Knobs and services that exist, two services at least, and endpoints that can report."""
    owners: dict[str, str] = {}
    for name, contract in fleet.contracts.items():
        path: Path = ("contracts", name)
        knob = fleet.knobs.get(contract.knob or "")
        if contract.knob and knob is None:
            problems.unknown((*path, "knob"), "contract.knob", "knob", contract.knob, fleet.knobs)
        if contract.knob and owners.setdefault(contract.knob, name) != name:
            message = f"{quote(contract.knob)} is in contract {quote(owners[contract.knob])} already, expected one"
            problems.add((*path, "knob"), "contract.knob_taken", message, "remove one of the two contracts")
        for service in contract.reported:
            _check_reported(fleet, service, (*path, "reported", service), problems)
            if knob is not None and service not in knob.on:
                message = f"knob {quote(knob.name)} is not on {quote(service)}, expected one of: {listed(knob.on)}"
                problems.add((*path, "reported", service), "contract.not_on", message, "add it to `on` of the knob")
        services = {*(knob.on if knob is not None else ()), *contract.reported}
        if len(services) == 1:
            message = f"only {quote(next(iter(services)))} is in the contract, expected two services or more"
            problems.add(path, "contract.one_service", message, "name the other side under reported, or its knob")


def _check_reported(fleet: Fleet, name: str, path: Path, problems: Problems) -> None:
    service = fleet.services.get(name)
    if service is None:
        problems.unknown(path, "contract.service", "service", name, fleet.services)
    elif service.server_info is None:
        problems.add(
            path,
            "contract.no_server_info",
            f"{quote(name)} has no server_info to read it from, expected the endpoint",
            'add server_info: {url: "http://127.0.0.1:PORT/server_info", from: host} to the service',
        )
