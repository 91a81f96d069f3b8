"""A query for a Prometheus server, narrowed to instances of the fleet, and the parts of it that are asked beside it.

A series belongs to `service@host` when its label `instance` says so, or names the address at which a Prometheus scrapes
it: ADDRESS:PORT or HOST:PORT, with the port of the service's metrics url. A name that two instances share is none.
A selector that says itself which `instance` or `job` it means is left as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from policies.fleet import Fleet
from policies.metrics.history import INSTANCE

if TYPE_CHECKING:
    import promql_parser

OWN_WORDS = frozenset({INSTANCE, "job"})


@dataclass(frozen=True, slots=True)
class Quantile:
    """A `histogram_quantile` of a query. q None: it is no plain number. whole: it is the whole query."""

    q: float | None
    buckets: str  # the query of its buckets
    whole: bool


@dataclass(frozen=True, slots=True)
class Scoped:
    """A query as it is sent. names: of the series that it reads on these instances."""

    text: str
    names: tuple[str, ...]
    matcher: str
    quantiles: tuple[Quantile, ...]

    def newest(self, name: str) -> str:
        """The query for the time of the oldest sample that counts, by instance."""
        return f"min by ({INSTANCE}) (timestamp({name}{{{self.matcher}}}))"


def known_as(fleet: Fleet, instances: Iterable[str]) -> dict[str, str]:
    """What a Prometheus may call these instances -> service@host."""
    every = [i for service in fleet.services for i in fleet.instances(service)]
    shared = Counter(name for instance in every for name in _names(fleet, instance))
    return {name: i for i in instances for name in _names(fleet, i) if shared[name] == 1}


def scope(parsed: promql_parser.Expr, names: Mapping[str, str]) -> Scoped:
    """The query narrowed to the instances that have these names."""
    import promql_parser as p

    pattern = "|".join(re.escape(name) for name in sorted(names)).replace("\\", "\\\\").replace('"', '\\"')
    matcher = f'{INSTANCE}=~"{pattern}"'
    read: dict[str, None] = {}

    def narrow(expr: p.Expr) -> p.Expr | None:
        if not isinstance(expr, p.VectorSelector) or {m.name for m in expr.matchers.matchers} & OWN_WORDS:
            return None
        if expr.name:
            read[expr.name] = None
        narrowed: p.Expr = p.parse(_with(expr.prettify(), matcher))
        return narrowed

    whole = p.transform(parsed, narrow)
    return Scoped(whole.prettify(), tuple(read), matcher, tuple(_quantiles(whole)))


def _with(selector: str, matcher: str) -> str:
    """A selector with one more matcher: `a{b="c"} offset 5m`, `a`, `{b="c"}`."""
    name, brace, rest = selector.partition("{")
    if brace:
        return f"{name}{{{matcher},{rest}"
    name, blank, rest = selector.partition(" ")
    return f"{name}{{{matcher}}}{blank}{rest}"


def _quantiles(whole: promql_parser.Expr) -> Iterable[Quantile]:
    import promql_parser as p

    found: list[Quantile] = []
    outermost: object = whole
    while isinstance(outermost, p.ParenExpr):
        outermost = outermost.expr
    first = outermost.prettify() if isinstance(outermost, p.Call) else ""

    def look(expr: p.Expr) -> None:
        if isinstance(expr, p.Call) and expr.func.name == "histogram_quantile":
            q = expr.args[0].val if isinstance(expr.args[0], p.NumberLiteral) else None
            found.append(Quantile(q, expr.args[1].prettify(), expr.prettify() == first))

    p.walk(whole, look)
    return found


def _names(fleet: Fleet, instance: str) -> Sequence[str]:
    host = instance.partition("@")[2]
    metrics = fleet.at(instance).metrics
    if metrics is None:
        return (instance,)
    address = fleet.hosts[host].address
    places = {f"[{address}]" if ":" in address else address, host}
    if len(fleet.hosts) == 1:  # a Prometheus on that very host
        places |= {urlsplit(metrics.url).hostname or host, "localhost"}
    return (instance, *(f"{place}:{metrics.port}" for place in sorted(places)))
