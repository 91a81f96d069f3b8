"""A unit that is not well before the change: what fails there is not the change's doing."""

from __future__ import annotations

from collections.abc import Iterator

from policies.finding import Finding
from policies.planning.steady import crash_looping
from policies.preflight.look import Look


def check(look: Look) -> Iterator[Finding]:
    """Not active, or started again and again."""
    unit = look.unit
    if unit.active_state != "active":
        yield look.finding("plan.not-active-now", state=unit.active_state, result=unit.result)
    elif crash_looping(unit):
        yield look.finding("plan.crash-looping", restarts=unit.n_restarts)
