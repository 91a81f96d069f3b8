"""Units whose main process is not the engine: how far "live" can be proven there is told beforehand."""

from __future__ import annotations

from collections.abc import Iterator

from policies.finding import Finding
from policies.preflight.look import Look
from policies.wrapper import wrapped


def check(look: Look) -> Iterator[Finding]:
    """A container's client, or a starter whose children do the work."""
    found = wrapped(look.unit)
    if found is None:
        return
    code = "plan.wraps-container" if found.kind == "container" else "plan.wraps-starter"
    yield look.finding(code, program=found.program)
