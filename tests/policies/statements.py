"""Random statements for properties: trees of the language, with names and queries that a fleet might have."""

from __future__ import annotations

from hypothesis import strategies as st

from policies.causes.statement import (
    Compared,
    Either,
    Every,
    InState,
    Metric,
    Not,
    Statement,
    Trend,
    comparisons,
    state_words,
)

NAMES = ("queue_reqs", "running_reqs", "ttft_s")
QUERIES = (
    "process_start_time_seconds",
    "sum(max by (instance, dp_rank) (sglang:num_queue_reqs))",
    'x{a="b c", d!~"(e|f).*"}',
    "a unless b",
    "sum(x) and y",
    "(a + b) / 2",
    "time() - process_start_time_seconds",
    "x offset 5m",
    'x{a="#"} > 0',
    "rate(x[1m])",
    r'x{path="C:\\d"}',
    r"""x{a="it's \"so\""}""",
    "state",
)
NUMBERS = (0.0, 1.0, -1.0, 0.5, 3.0, 600.0, 1e20, -2.5e-7)


def metrics() -> st.SearchStrategy[Metric]:
    """Names of the fleet, and queries."""
    return st.sampled_from([*(Metric(name) for name in NAMES), *(Metric(query, free=True) for query in QUERIES)])


def atoms(of: st.SearchStrategy[Metric] | None = None) -> st.SearchStrategy[Statement]:
    """One comparison, trend or state."""
    metric = metrics() if of is None else of
    finite = st.floats(allow_nan=False, allow_infinity=False)
    return st.one_of(
        st.builds(Compared, metric, st.sampled_from(comparisons), st.sampled_from(NUMBERS) | finite),
        st.builds(Trend, metric, st.sampled_from(("falling", "rising")), st.booleans()),
        st.builds(InState, st.sampled_from(state_words), st.booleans()),
    )


def statements(of: st.SearchStrategy[Metric] | None = None) -> st.SearchStrategy[Statement]:
    """Whole statements."""
    return st.recursive(
        atoms(of),
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.builds(Every, st.lists(inner, min_size=2, max_size=3).map(tuple)),
            st.builds(Either, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        ),
        max_leaves=8,
    )
