"""Is the value one that the knob can have?"""

from __future__ import annotations

from policies.case import Case
from policies.finding import Finding
from policies.knobs import value_problem


def judge(case: Case) -> tuple[Finding, ...]:
    """Refuse a value outside the knob's type or range; taking the variable away has no value to judge."""
    if case.knob is None or case.value is None:
        return ()
    problem = value_problem(case.knob, case.value)
    return (problem,) if problem else ()
