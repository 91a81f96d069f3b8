"""Which build answers: another one than the plan saw is a sign of its own that the answer is not the unit's."""

from __future__ import annotations

import json

from policies.facts import UnitFacts
from policies.finding import Finding
from policies.gates import readable
from policies.gates.port import taken


def version_of(unit: UnitFacts) -> str | None:
    """What `/server_info` says at the unit's address; None when it says nothing."""
    answer = next((a for a in unit.http if a.id == "server_info" and a.status == 200), None)
    try:
        found = json.loads(answer.body).get("version") if answer is not None else None
    except (ValueError, AttributeError, RecursionError):
        return None
    return readable(found)[:80] if isinstance(found, str) else None


def own_version(unit: UnitFacts) -> str | None:
    """As `version_of`, unless somebody else has the port: then it is the version of that one."""
    return None if taken(unit.port) else version_of(unit)


def moved(instance: str, unit: UnitFacts, planned: str | None) -> tuple[Finding, ...]:
    """The version that answers now and the planned one, where both are known and differ."""
    now = version_of(unit)
    if now is None or planned is None or now == planned:
        return ()
    values: dict[str, str | int | float | None] = {"instance": instance, "version": now, "planned": planned}
    values["url"] = next(a.url for a in unit.http if a.id == "server_info")
    return (Finding(code="gate.version-differs", effect="note", values=values),)
