"""Statements of a fleet file: `needs` and `refuted_by` of causes, `if_guilty` of knobs."""

from __future__ import annotations

from collections.abc import Iterable

from policies.causes.parsing import read_statement
from policies.causes.query import families_of
from policies.causes.scanning import Malformed
from policies.causes.statement import Metric, metrics_of
from policies.fleet import Fleet
from policies.fleet_checks.metrics import check_query
from policies.fleet_checks.problems import Path, Problems, quote


def check_causes(fleet: Fleet, problems: Problems) -> None:
    """Record statements that cannot be read, and names in them that are no metrics of the fleet."""
    for name, cause in fleet.causes.items():
        check_statement(fleet, ("causes", name, "needs"), cause.needs, problems)
        check_statement(fleet, ("causes", name, "refuted_by"), cause.refuted_by or "", problems)
    for name, knob in fleet.knobs.items():
        check_statement(fleet, ("knobs", name, "if_guilty"), knob.if_guilty or "", problems)


def check_statement(fleet: Fleet, path: Path, text: str, problems: Problems) -> None:
    """Record what is wrong with one statement; an empty one is reported where it was read."""
    if not text.strip():
        return  # reported where it was read, or not given
    statement = read_statement(text)
    if isinstance(statement, Malformed):
        message = f"{quote(text)} cannot be read at character {statement.at + 1}: {statement.message}"
        problems.add(path, "cause.malformed", message, statement.hint)
        return
    _check_names(fleet, path, metrics_of(statement), problems)


def _check_names(fleet: Fleet, path: Path, metrics: Iterable[Metric], problems: Problems) -> None:
    for metric in metrics:
        if not metric.free:
            if metric.text not in fleet.metrics:
                problems.unknown(path, "cause.metric", "metric", metric.text, fleet.metrics)
            continue
        check_query(metric.text, problems, path, fleet)
        for name in sorted(families_of(metric.text) & fleet.metrics.keys()):
            problems.add(
                path,
                "cause.name_in_query",
                f"{quote(name)} is a metric of this fleet and stands inside the query {quote(metric.text)}, where only"
                " names that a server exports are known, expected it alone",
                f"write {name} alone, or what its own query says",
            )
