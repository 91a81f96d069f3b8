"""Reading a query: PromQL, parsed by promql-parser, as a tree of the part that recorded scrapes can answer.

That part: selectors with every kind of label matcher, sum|max|min|avg|count by or without labels, arithmetic and
comparison (also `bool`) between numbers, series and aggregates paired one to one, time(), rate|increase|delta|irate|
idelta over recorded scrapes, histogram_quantile. What is good PromQL and more than that needs a Prometheus server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from policies.finding import Finding
from policies.metrics.nodes import (
    ARITHMETIC,
    COMPARE,
    NAME,
    OVER,
    REDUCE,
    Aggregate,
    Arithmetic,
    Binary,
    Change,
    Compare,
    Matcher,
    Negate,
    Node,
    Number,
    Over,
    Quantile,
    Reduce,
    Selector,
    Time,
    walk,
)
from policies.metrics.regex import NotSupported, Pattern

if TYPE_CHECKING:
    import promql_parser

LONGEST_QUERY = 2000
DEEPEST = 60
# promql-parser descends once for each of these, and ends the whole process when its stack is full
# Source: tried with 0.12, about 400 on a stack of 512 KiB
SIGNS = frozenset("([{+-*/%^<>=!")
MOST_SIGNS = 200


@dataclass(frozen=True, slots=True)
class Query:
    """A query that recorded scrapes can answer."""

    text: str
    root: Node

    @property
    def range_s(self) -> float:
        """How far before the moment of an evaluation it looks. Units: seconds."""
        return max((node.range_s for node in walk(self.root) if isinstance(node, Change)), default=0.0)

    @property
    def names(self) -> frozenset[str] | None:
        """The names of the series that it reads; None when it may read any."""
        found = [node.name for node in walk(self.root) if isinstance(node, Selector)]
        return None if None in found else frozenset(name for name in found if name is not None)


def compile_query(text: str) -> Query | Finding:
    """The query, or a finding: `metrics.bad-query` is no PromQL, `metrics.needs-prometheus` more than scrapes give."""
    parsed = parse_query(text)
    if isinstance(parsed, Finding):
        return parsed
    try:
        return Query(text, _node(parsed, 0))
    except NotSupported as error:
        values: dict[str, str | int | float | None] = {"query": text, "construct": str(error)}
        return Finding(code="metrics.needs-prometheus", effect="refuse", values=values)


def parse_query(text: str) -> promql_parser.Expr | Finding:
    """The tree of promql-parser, or a finding `metrics.bad-query`."""
    import promql_parser

    if len(text) > LONGEST_QUERY:
        return _bad(text[:60] + "...", f"it has {len(text)} characters, expected at most {LONGEST_QUERY}")
    if sum(char in SIGNS for char in text) > MOST_SIGNS:
        return _bad(text[:60] + "...", f"it has more than {MOST_SIGNS} brackets and operators, expected fewer")
    try:
        parsed = promql_parser.parse(text)
    except ValueError as error:
        return _bad(text, str(error))
    ranges = (promql_parser.MatrixSelector, promql_parser.SubqueryExpr, promql_parser.StringLiteral)
    if isinstance(parsed, ranges):
        return _bad(text, "it gives a range or a text, expected numbers; try rate(...)")
    return parsed


def _bad(text: str, problem: str) -> Finding:
    return Finding(code="metrics.bad-query", effect="refuse", values={"query": text, "problem": problem})


def _node(expr: object, depth: int) -> Node:
    import promql_parser as p

    if depth > DEEPEST:
        raise NotSupported("so deep a nesting")
    match expr:
        case p.ParenExpr():
            return _node(expr.expr, depth + 1)
        case p.NumberLiteral():
            return Number(expr.val)
        case p.UnaryExpr():
            return Negate(_node(expr.expr, depth + 1))
        case p.VectorSelector():
            return _selector(expr)
        case p.AggregateExpr():
            return _aggregate(expr, depth)
        case p.BinaryExpr():
            return _binary(expr, depth)
        case p.Call():
            return _call(expr, depth)
        case _:
            raise NotSupported("such an expression")


def _selector(expr: promql_parser.VectorSelector) -> Selector:
    import promql_parser as p

    if expr.offset is not None:
        raise NotSupported("offset")
    if expr.at is not None:
        raise NotSupported("@")
    if expr.matchers.or_matchers:
        raise NotSupported("`or` between label matchers")
    matchers = [Matcher(NAME, "=", expr.name)] if expr.name else []
    for found in expr.matchers.matchers:
        match found.op:
            case p.MatchOp.Equal:
                matchers.append(Matcher(found.name, "=", found.value))
            case p.MatchOp.NotEqual:
                matchers.append(Matcher(found.name, "!=", found.value))
            case _:
                Pattern(found.value)  # refuses here what it cannot match later
                matchers.append(Matcher(found.name, "=~" if found.op == p.MatchOp.Re else "!~", found.value))
    return Selector(tuple(matchers))


def _aggregate(expr: promql_parser.AggregateExpr, depth: int) -> Aggregate:
    import promql_parser as p

    op = str(expr.op)
    if op not in REDUCE:
        raise NotSupported(op)
    labels = tuple(expr.modifier.labels) if expr.modifier else ()
    without = expr.modifier is not None and expr.modifier.type == p.AggModifierType.Without
    return Aggregate(cast("Reduce", op), labels, without, _node(expr.expr, depth + 1))


def _binary(expr: promql_parser.BinaryExpr, depth: int) -> Binary:
    import promql_parser as p

    op = str(expr.op)
    if op not in ARITHMETIC and op not in COMPARE:
        raise NotSupported(op)
    lhs, rhs = _node(expr.lhs, depth + 1), _node(expr.rhs, depth + 1)
    how = expr.modifier
    if how is not None and how.card != p.VectorMatchCardinality.OneToOne:
        raise NotSupported("group_left and group_right")
    if how is not None and (how.fill_values.lhs is not None or how.fill_values.rhs is not None):
        raise NotSupported("fill values")
    matching = how.matching if how is not None else None
    return Binary(
        cast("Arithmetic | Compare", op),
        lhs,
        rhs,
        as_bool=how is not None and how.return_bool,
        labels=tuple(matching.labels) if matching else (),
        on=matching is not None and matching.type == p.LabelModifierType.Include,
    )


def _call(expr: promql_parser.Call, depth: int) -> Node:
    import promql_parser as p

    name, args = expr.func.name, expr.args
    if name == "time":
        return Time()
    if name == "histogram_quantile":
        return Quantile(_node(args[0], depth + 1), _node(args[1], depth + 1))
    if name not in OVER:
        raise NotSupported(f"{name}()")
    inner = args[0]
    while isinstance(inner, p.ParenExpr):
        inner = inner.expr
    if not isinstance(inner, p.MatrixSelector):
        raise NotSupported("a subquery")
    return Change(cast("Over", name), _selector(inner.vector_selector), inner.range.total_seconds())
