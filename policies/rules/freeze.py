"""Freezes: times in which nothing is changed. Taking back (revert, unset, rollback) is allowed in one."""

from __future__ import annotations

from datetime import UTC, datetime
from math import floor
from zoneinfo import ZoneInfo

from croniter import croniter

from policies.case import Case
from policies.finding import Finding
from policies.fleet import Freeze


def judge(case: Case) -> tuple[Finding, ...]:
    """Refuse while a freeze is in force, naming it and its end."""
    findings: list[Finding] = []
    for freeze in case.fleet.freezes:
        until = frozen_until(freeze, case.now)
        if until is None:
            continue
        takes_back = case.intent in {"revert", "unset", "rollback"}
        findings.append(
            Finding(
                code="freeze.taking-back-is-allowed" if takes_back else "freeze.in-force",
                effect="note" if takes_back else "refuse",
                values={"freeze": freeze.name, "until": until},
            )
        )
    return tuple(findings)


def frozen_until(freeze: Freeze, now: float) -> float | None:
    """End (epoch seconds) of the freeze that holds at `now`; None outside of it."""
    # get_prev is strict, so the next whole second is given: a freeze that starts in this very second has started.
    # It is reached in UTC, since an hour that a clock change repeats is lost in local arithmetic.
    moment = datetime.fromtimestamp(floor(now) + 1, tz=UTC).astimezone(ZoneInfo(freeze.tz))
    start: datetime = croniter(freeze.cron, moment).get_prev(datetime)
    until = start.timestamp() + freeze.for_s
    return until if now < until else None
