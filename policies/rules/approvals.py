"""How many people must agree, and from which role."""

from __future__ import annotations

from policies.case import Case
from policies.finding import Finding


def judge(case: Case) -> tuple[Finding, ...]:
    """One `needs` finding a matching rule that asks for approvals; rules with different roles cannot both hold."""
    if all(rule.approvals is None for rule in case.matching):
        unsaid: dict[str, str | int | float | None] = {"intent": case.intent, "subject": case.subject}
        return (Finding(code="rule.no-rule-says-approvals", effect="refuse", values=unsaid),)
    rules = [rule for rule in case.matching if rule.approvals]
    roles = {rule.by for rule in rules}
    if len(roles) > 1:
        values: dict[str, str | int | float | None] = {"roles": ", ".join(sorted(str(role) for role in roles))}
        return (Finding(code="rule.approver-roles-differ", effect="refuse", values=values),)
    return tuple(
        Finding(
            code="rule.needs-approval",
            effect="needs",
            values={"count": rule.approvals, "role": rule.by, "actor": case.actor.id, "line": rule.line},
        )
        for rule in rules
    )
