"""The decision on a case: every rule family speaks, the strictest wins, and when no rule matches the answer is no."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from policies.case import Case
from policies.events.asking import Asked
from policies.events.emergency import Override
from policies.finding import Finding
from policies.rules import FAMILIES
from policies.rules.emergency import overrule


@dataclass(frozen=True, slots=True)
class Decision:
    """`refused` when any finding refuses; `needs` when approvals are needed; else `allowed`.

    approvals: how many different people must agree. by: the role they need. expires_s: how long the plan is open.
    emergency: what it does without when it is confirmed as one.
    """

    outcome: Literal["allowed", "needs", "refused"]
    findings: tuple[Finding, ...]
    approvals: int
    by: str | None
    expires_s: float
    emergency: Override | None = None


def decided(case: Case, asked: Asked) -> Decision:
    """The decision on what was asked, as it was said. What takes back an emergency needs nobody's word."""
    emergency = case.fleet.emergency
    if asked.undoes is not None:
        goes_back = Finding(code="emergency.goes-back", effect="note", values={"change": asked.undoes})
        by = emergency.ratify_by if emergency is not None else None
        return Decision("allowed", (goes_back,), 0, by, case.fleet.timing.approval_s)
    return decide(case.said(asked.intent))


def decide(case: Case) -> Decision:
    """Judge a case. Order of findings is the order of the families."""
    found = (*(finding for family in FAMILIES for finding in family(case)), *case.locks)
    rules = case.matching
    quorums = [(rule.approvals, rule.by) for rule in rules if rule.approvals is not None]
    approvals = max((count for count, _ in quorums), default=0)
    by = next((role for count, role in quorums if count == approvals), None)
    expiries = [rule.expires_s for rule in rules if rule.expires_s is not None]
    expires_s = min(expiries, default=case.fleet.timing.approval_s)
    findings, emergency = overrule(case, found, approvals, by)
    if any(f.effect == "refuse" for f in findings):
        outcome: Literal["allowed", "needs", "refused"] = "refused"
    else:
        outcome = "needs" if approvals else "allowed"
    return Decision(outcome, findings, approvals, by, expires_s, emergency)
