"""A failure that the plan had warned of: the value is not to blame, and another restart would end alike."""

from __future__ import annotations

from policies.finding import Finding
from policies.plan import Plan

WARNED = frozenset({"plan.start-timeout-short", "plan.start-timeout-recorded"})


def timeout(plan: Plan, instance: str, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The start limit of time was over, and it was known to be below the boot."""
    warned = next((w for w in plan.warnings if w.code in WARNED and w.values.get("instance") == instance), None)
    if warned is None or all(f.code != "gate.incarnation.start-timeout" for f in findings):
        return ()
    values = {name: warned.values.get(name) for name in ("instance", "unit", "timeout_start_s")}
    return (Finding(code="gate.timeout-foreseen", effect="note", values=values),)
