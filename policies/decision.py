"""The decision on a case: every rule family speaks, the strictest wins, and when no rule matches the answer is no."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from policies.case import Case
from policies.finding import Finding
from policies.rules import FAMILIES


@dataclass(frozen=True, slots=True)
class Decision:
    """`refused` when any finding refuses; `needs` when approvals are needed; else `allowed`.

    approvals: how many different people must agree. by: the role they need. expires_s: how long the plan is open.
    """

    outcome: Literal["allowed", "needs", "refused"]
    findings: tuple[Finding, ...]
    approvals: int
    by: str | None
    expires_s: float


def decide(case: Case) -> Decision:
    """Judge a case. Order of findings is the order of the families."""
    findings = tuple(finding for family in FAMILIES for finding in family(case))
    rules = case.matching
    quorums = [(rule.approvals, rule.by) for rule in rules if rule.approvals is not None]
    approvals = max((count for count, _ in quorums), default=0)
    by = next((role for count, role in quorums if count == approvals), None)
    expiries = [rule.expires_s for rule in rules if rule.expires_s is not None]
    expires_s = min(expiries, default=case.fleet.timing.approval_s)
    if any(f.effect == "refuse" for f in findings):
        outcome: Literal["allowed", "needs", "refused"] = "refused"
    else:
        outcome = "needs" if approvals else "allowed"
    return Decision(outcome, findings, approvals, by, expires_s)
