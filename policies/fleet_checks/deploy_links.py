"""Checks of `deploy:` entries across a fleet: orders that restart the service, links that one service owns."""

from __future__ import annotations

from policies.deploys.strategy import DeployEntry, Releases, Variable
from policies.fleet import Fleet
from policies.fleet_checks.problems import Path, Problems, listed, quote


def check_deploys(fleet: Fleet, problems: Problems) -> None:
    """Record every error of a `deploy:` entry that needs another entry to be seen."""
    links: dict[tuple[str, str], str] = {}
    for name, service in fleet.services.items():
        deploy = service.deploy
        if deploy is None:
            continue
        path: Path = ("services", name, "deploy")
        _check_orders(fleet, name, deploy, path, problems)
        if isinstance(deploy.strategy, Variable):
            _check_variable(fleet, name, deploy.strategy, path, problems)
        if not isinstance(deploy.strategy, Releases) or not deploy.strategy.path:
            continue
        for host in service.on:
            other = links.setdefault((host, deploy.strategy.link), name)
            if other != name:
                problems.add(
                    (*path, "releases"),
                    "deploy.link_taken",
                    f"{deploy.strategy.link} on {host} is already switched for service {quote(other)}, "
                    "expected one service a link",
                    f"take this entry away and name {quote(name)} in a restart order of {quote(other)}",
                )


def _check_orders(fleet: Fleet, name: str, deploy: DeployEntry, path: Path, problems: Problems) -> None:
    for i, order in enumerate(deploy.restarts):
        services = fleet.restarts.get(order)
        if services is None:
            problems.unknown((*path, "restarts", i), "deploy.restart", "restart order", order, fleet.restarts)
        elif name not in services:
            problems.add(
                (*path, "restarts", i),
                "deploy.restart_misses",
                f"{quote(order)} restarts {listed(services)} and not {quote(name)}, expected an order with it",
                f"add {quote(name)} to restarts.{order}, or remove {quote(order)} here",
            )


def _check_variable(fleet: Fleet, name: str, strategy: Variable, path: Path, problems: Problems) -> None:
    for knob in fleet.knobs.values():
        if strategy.env and name in knob.on and knob.variable(name) == strategy.env:
            problems.add(
                (*path, "variable", "env"),
                "deploy.env_taken",
                f"{quote(strategy.env)} on {name} is knob {quote(knob.name)} already, expected one owner a variable",
                f"remove knob {quote(knob.name)} from {name}, or deploy with another variable",
            )
