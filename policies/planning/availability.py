"""Whether an instance is in service when a plan is made: what is away already counts as away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from policies.facts import UnitFacts
from policies.gates.port import taken
from policies.planning.steady import crash_looping

OK = 200


def away(unit: UnitFacts) -> str | None:
    """Why an instance is out of service, as a person reads it; None where nothing that was read says so.

    A health check that was not asked says nothing.
    """
    if unit.active_state != "active":
        return f"its unit is {unit.active_state} ({unit.result})"
    if crash_looping(unit):
        return f"systemd started it {unit.n_restarts} times again"
    if taken(unit.port):
        return "somebody else has its port"
    health = next((answer for answer in unit.http if answer.id == "health"), None)
    if health is None or health.status == OK:
        return None
    if health.status is None:
        return "its health check does not answer"
    return f"its health check answers {health.status}"


def all_away(instances: Iterable[str], facts: Mapping[str, UnitFacts]) -> dict[str, str]:
    """service@host and why, of those that are out of service. Where there are no facts, nothing is known."""
    found = {i: away(facts[i]) for i in instances if i in facts}
    return {i: why for i, why in found.items() if why is not None}
