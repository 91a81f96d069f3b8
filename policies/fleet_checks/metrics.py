"""Queries of a fleet file's `metrics:`: each must be PromQL, and answerable from what this fleet has."""

from __future__ import annotations

from policies.finding import Finding
from policies.fleet import Fleet
from policies.fleet_checks.problems import Path, Problems, quote
from policies.metrics.names import WRONG
from policies.metrics.promql import Query, compile_query, parse_query

LEFT_OPEN = "..."  # a query that is still to be written; asked, it answers that it is no PromQL


def check_queries(fleet: Fleet, problems: Problems) -> None:
    """Record queries that are no PromQL, and those that only a Prometheus server could answer where there is none."""
    for name, metric in fleet.metrics.items():
        if metric.query not in {"", LEFT_OPEN}:
            check_query(metric.query, problems, ("metrics", name, "query"), fleet)


def check_query(query: str, problems: Problems, path: Path, fleet: Fleet) -> None:
    """Record what is wrong with one query."""
    parsed = parse_query(query)
    if isinstance(parsed, Finding):
        message = f"{quote(query)} is no PromQL: {parsed.values['problem']}, expected a query"
        problems.add(path, "metric.query", message, 'write e.g. query: "sum(max by (instance, dp_rank) (NAME))"')
        return
    compiled = compile_query(query)
    names = compiled.names if isinstance(compiled, Query) else None
    for name in sorted((names or frozenset()) & WRONG.keys()):
        message = f"no engine exports {quote(name)}, expected a name that one does"
        problems.add(path, "metric.unknown_series", message, f"write {WRONG[name]}")
    if isinstance(compiled, Finding) and fleet.prometheus_url is None:
        construct = compiled.values["construct"]
        problems.add(
            path,
            "metric.needs_prometheus",
            f"recorded scrapes cannot answer {construct} in {quote(query)},"
            " expected a query without it or a Prometheus server",
            'write it without, or add prometheus: {url: "http://HOST:9090"}',
        )
