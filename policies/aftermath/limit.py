"""Whether systemd still tries, or has met the start limit."""

from __future__ import annotations

from policies.facts import UnitFacts
from policies.finding import Finding


def reached(instance: str, unit: UnitFacts, n_restarts: int | None) -> tuple[Finding, ...]:
    """A failed unit that Restart= would start again, after as many starts as the limit has.

    Source: systemd 252 keeps the result of the first failure, so `start-limit-hit` is seldom shown.
    """
    burst = unit.start_limit_burst
    hit = unit.result == "start-limit-hit"
    counted = burst is not None and n_restarts is not None and n_restarts >= burst > 0
    if unit.active_state != "failed" or not (hit or (counted and unit.restart not in {"", "no"})):
        return ()
    values: dict[str, str | int | float | None] = {"instance": instance, "unit": unit.unit, "burst": burst}
    values["interval_s"] = unit.start_limit_interval_s
    return (Finding(code="gate.start-limit-reached", effect="note", values=values),)
