"""Findings in the order in which they matter, what is the same at several loads said once."""

from __future__ import annotations

from collections.abc import Sequence

from policies.finding import Effect, Finding

RANK: dict[Effect, int] = {"refuse": 0, "needs": 1, "warn": 1, "note": 2, "allow": 3}


def told(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Refusals first; findings that differ in nothing but their load become one that names the loads."""
    loads: dict[tuple[object, ...], list[str]] = {}
    first: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        rest = tuple((name, value) for name, value in finding.values.items() if name != "point")
        key = (finding.code, finding.effect, rest)
        first.setdefault(key, finding)
        at = loads.setdefault(key, [])
        point = finding.values.get("point")
        if point is not None and str(point) not in at:
            at.append(str(point))
    merged = [
        one.model_copy(update={"values": {**one.values, "point": ", ".join(loads[key])}}) if loads[key] else one
        for key, one in first.items()
    ]
    return tuple(sorted(merged, key=lambda f: RANK[f.effect]))
