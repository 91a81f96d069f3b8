"""Freezes: times in which nothing is changed. Taking back (revert, unset, rollback) is allowed in one.

A freeze begins when the clocks of its zone show what `cron` says, and lasts `for`, in seconds that pass: 62 h are 62 h.
A start in the hour that a clock change leaves out is at the change; one in the hour that comes twice is the first,
unless the cron names every hour.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from math import floor
from zoneinfo import ZoneInfo

from croniter import croniter

from policies.case import Case
from policies.finding import Finding
from policies.fleet import Freeze

# so far a clock that was put back may show less than it did already. Source: tzdata, no change since 1970 exceeds it
MOST_REPEATED = timedelta(hours=3)


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
                values={"freeze": freeze.name, "until": until, "there": _there(freeze, until)},
            )
        )
    return tuple(findings)


def _there(freeze: Freeze, at: float) -> str:
    """A moment as the clocks of the freeze's zone show it, whoever reads it and wherever."""
    moment = datetime.fromtimestamp(at, tz=ZoneInfo(freeze.tz))
    return f" ({moment.isoformat(sep=' ', timespec='auto' if moment.second else 'minutes')} {freeze.tz})"


def frozen_until(freeze: Freeze, now: float) -> float | None:
    """End (epoch seconds) of the freeze that holds at `now`; None outside of it."""
    start = _last_start(freeze, now)
    until = start + freeze.for_s
    return until if now < until else None


def _last_start(freeze: Freeze, now: float) -> float:
    """The last start that has come. Starts are looked for on the clock's face, where cron is exact, then timed."""
    zone = ZoneInfo(freeze.tz)
    moment = datetime.fromtimestamp(floor(now), tz=zone)
    # what this clock shows, further on where it was put back within the last hours; get_prev is strict: one second more
    face = moment.replace(tzinfo=None) + timedelta(seconds=1)
    if moment.utcoffset() != datetime.fromtimestamp(floor(now) - MOST_REPEATED.total_seconds(), tz=zone).utcoffset():
        face += MOST_REPEATED
    faces, begun = croniter(freeze.cron, face), list[float]()
    while True:
        shown: datetime = faces.get_prev(datetime)
        begun += [at for at in _moments(shown, zone, every_hour=_every_hour(freeze)) if at <= now]
        if begun and shown <= moment.replace(tzinfo=None):
            return max(begun)


def _every_hour(freeze: Freeze) -> bool:
    return freeze.cron.split()[1].startswith("*")


def _moments(face: datetime, zone: ZoneInfo, *, every_hour: bool) -> tuple[float, ...]:
    """When the clocks of a zone show this first, and for a cron of every hour also when they do again."""
    first, second = (face.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
    if first <= second:
        return (first, second) if every_hour else (first,)
    # left out: never shown, passed at the change, which is behind `second` and not behind `first`
    before, change = int(second), int(first)
    offset = datetime.fromtimestamp(before, tz=zone).utcoffset()
    while change - before > 1:
        middle = (before + change) // 2
        if datetime.fromtimestamp(middle, tz=zone).utcoffset() == offset:
            before = middle
        else:
            change = middle
    return (float(change),)
