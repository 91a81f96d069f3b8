"""Who may ask. The smallest family: copy it to start another."""

from __future__ import annotations

from policies.case import Case
from policies.finding import Finding


def judge(case: Case) -> tuple[Finding, ...]:
    """Refuse when no rule matches, and when a matching rule names a role that the actor does not have."""
    rules = case.matching
    asking = [rule for rule in rules if rule.ask is not None]
    if not asking:
        values: dict[str, str | int | float | None] = {"intent": case.intent, "subject": case.subject}
        return (Finding(code="rule.no-rule-says-who-may-ask", effect="refuse", values=values),)
    return tuple(
        Finding(
            code="rule.may-ask" if rule.ask in case.actor.roles else "rule.may-not-ask",
            effect="allow" if rule.ask in case.actor.roles else "refuse",
            values={"actor": case.actor.id, "role": rule.ask, "line": rule.line},
        )
        for rule in asking
    )
