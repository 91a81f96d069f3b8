"""A free query of a statement: PromQL that gives a number, short enough to be parsed safely."""

from __future__ import annotations

from policies.causes.scanning import Malformed

LONGEST = 500
MOST_SIGNS = 64
# Source: promql-parser 0.12 descends once for each of these and ends the whole process when the stack is full,
# at about 400 of them on a stack of 512 KiB
SIGNS = frozenset("([{+-*/%^<>=!")
COUNTERS = ("_total", "_count", "_sum", "_bucket")
HINT = 'write a fleet metric, or a query in quotes: "sum(sglang:num_queue_reqs)" > 0'


def problem_of(text: str, at: int) -> Malformed | None:
    """Why a text is no query, or None. `at` is where it stands."""
    from promql_parser import MatrixSelector, NumberLiteral, StringLiteral, parse

    if len(text) > LONGEST:
        return Malformed(at, f"found a query of {len(text)} characters, expected at most {LONGEST}", "shorten it")
    if sum(char in SIGNS for char in text) > MOST_SIGNS:
        message = f"found a query of more than {MOST_SIGNS} brackets and operators, expected fewer"
        return Malformed(at, message, "give it a name in the fleet file's `metrics`, in parts")
    try:
        tree = parse(text)
    except ValueError as error:
        said = shown(str(error).splitlines()[0] if str(error) else "", 100)[1:-1]
        return Malformed(at, f"found {shown(text)}, expected a metric or a query ({said})", HINT)
    if isinstance(tree, NumberLiteral | StringLiteral):
        return Malformed(at, f"found {shown(text)}, expected a metric before the comparison", HINT)
    if isinstance(tree, MatrixSelector):
        return Malformed(at, f"found {shown(text)}, a whole range, expected one number", "write e.g. rate(...) of it")
    return None


def families_of(text: str) -> frozenset[str]:
    """The names that a query selects by; none of a text that is no query."""
    from promql_parser import VectorSelector, parse

    if problem_of(text, 0) is not None:
        return frozenset()
    found: set[str] = set()
    waiting: list[object] = [parse(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, VectorSelector) and node.name:
            found.add(node.name)
        for inner in ("expr", "lhs", "rhs", "param", "vector_selector", "args"):
            below = getattr(node, inner, None)
            waiting += below if isinstance(below, list) else [below] if below is not None else []
    return frozenset(found)


def is_counter(text: str) -> bool:
    """Whether a query gives a counter as it is, or a sum of them: such a value only goes back on a restart."""
    from promql_parser import AggregateExpr, ParenExpr, VectorSelector, parse

    if problem_of(text, 0) is not None:
        return False
    node = parse(text)
    while isinstance(node, AggregateExpr | ParenExpr):
        node = node.expr
    return isinstance(node, VectorSelector) and (node.name or "").endswith(COUNTERS)


def shown(text: str, longest: int = 40) -> str:
    """A piece of a text in quotes, cut, without control characters."""
    cut = text if len(text) <= longest else text[: longest - 3] + "..."
    return "'" + "".join(c if c.isprintable() else "?" for c in cut) + "'"
