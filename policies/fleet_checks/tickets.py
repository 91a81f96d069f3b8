"""`ticket:` of a rule: that a change must name one, and what its id must look like."""

from __future__ import annotations

import yaml

from policies.fleet import TicketNeed
from policies.fleet_checks.regex import regex
from policies.fleet_checks.table import Table

EXAMPLE = '"(INC|OPS)-[0-9]+"'


def read_ticket(rule: Table) -> TicketNeed | None:
    """`ticket: required`, or `ticket: {pattern: "INC-[0-9]+"}`."""
    if "ticket" not in rule:
        return None
    if not isinstance(rule.nodes["ticket"], yaml.MappingNode):
        rule.word("ticket", ("required",), "rule.ticket")
        return TicketNeed()
    table = rule.table("ticket", ("pattern",))
    if table is None:
        return None
    table.need("pattern", f"pattern: {EXAMPLE}")
    return TicketNeed(pattern=regex(table, "pattern", "ticket.pattern", EXAMPLE))
