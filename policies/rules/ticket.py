"""Which changes must name the incident or ticket that they are done for."""

from __future__ import annotations

import re

from policies.case import Case
from policies.finding import Finding


def judge(case: Case) -> tuple[Finding, ...]:
    """Refuse, once for each matching rule that demands one, where none is named or another kind of id is expected."""
    found = []
    for rule in case.matching:
        if rule.ticket is None:
            continue
        values: dict[str, str | int | float | None] = {"line": rule.line, "pattern": rule.ticket.pattern}
        if case.ticket is None:
            found.append(Finding(code="ticket.missing", effect="refuse", values=values))
        elif rule.ticket.pattern is not None and re.fullmatch(rule.ticket.pattern, case.ticket) is None:
            values = {**values, "ticket": case.ticket}
            found.append(Finding(code="ticket.other-pattern", effect="refuse", values=values))
    return tuple(found)
