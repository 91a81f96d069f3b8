"""`emergency:` of a fleet file: who may do without an approver or in a freeze, and who answers for it, until when."""

from __future__ import annotations

from typing import Literal

from policies.fleet import Emergency, Fleet
from policies.fleet_checks.problems import Problems, quote
from policies.fleet_checks.table import Table

KEYS = ("by", "ratify_by", "within", "evidence")
EVIDENCE: tuple[Literal["needed", "skipped"], ...] = ("needed", "skipped")
LEAST_S, MOST_S = 60.0, 7 * 86_400.0  # a second person has to be reached, and must not be forgotten


def read_emergency(top: Table) -> Emergency | None:
    """`emergency: {by: oncall, ratify_by: approvers, within: 2h}`."""
    table = top.table("emergency", KEYS)
    if table is None:
        return None
    table.need("by", "by: ROLE")
    table.need("ratify_by", "ratify_by: ROLE")
    table.need("within", "within: 2h")
    return Emergency(
        by=table.name("by") or "",
        ratify_by=table.name("ratify_by") or "",
        within_s=table.duration("within", 7200.0, LEAST_S, MOST_S),
        evidence=table.word("evidence", EVIDENCE, "emergency.evidence") or "needed",
    )


def check_emergency(fleet: Fleet, problems: Problems) -> None:
    """Roles that exist, and somebody else who can ratify."""
    found = fleet.emergency
    if found is None:
        return
    for key, role in (("by", found.by), ("ratify_by", found.ratify_by)):
        if role and role not in fleet.roles:
            problems.unknown(("emergency", key), "emergency.role", "role", role, fleet.roles)
    by, second = fleet.roles.get(found.by), fleet.roles.get(found.ratify_by)
    if by is None or second is None or by.groups or second.groups:
        return
    if set(second.users) <= set(by.users) and len(second.users) < 2:
        problems.add(
            ("emergency", "ratify_by"),
            "emergency.nobody_else",
            f"{quote(found.ratify_by)} has nobody but who may override, expected a second person",
            f"add users to roles.{found.ratify_by}",
        )
