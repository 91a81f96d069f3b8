"""Rule families. Each looks at a Case and gives findings; add one by copying `asker.py` and listing it here."""

from __future__ import annotations

from collections.abc import Callable

from policies.case import Case
from policies.finding import Finding
from policies.rules import approvals, asker, evidence, freeze, ticket, value

FAMILIES: tuple[Callable[[Case], tuple[Finding, ...]], ...] = (
    asker.judge,
    value.judge,
    ticket.judge,
    evidence.judge,
    approvals.judge,
    freeze.judge,
)
