"""An emergency over a decision: what it does without is told in place of the refusal, everything else stays refused."""

from __future__ import annotations

from policies.case import Case
from policies.events.emergency import Override
from policies.finding import Finding
from policies.fleet import Emergency

Values = dict[str, str | int | float | None]
Found = tuple[Finding, ...]


def overrule(case: Case, found: Found, approvals: int, role: str | None) -> tuple[Found, Override | None]:
    """The findings with what an emergency makes of them, and what it does without; None where that is nothing."""
    emergency = case.fleet.emergency
    if not case.emergency:
        return (*found, *_could(emergency, found)), None
    if emergency is None:
        return (*found, Finding(code="emergency.not-declared", effect="refuse")), None
    values: Values = {"actor": case.actor.id, "role": emergency.by}
    if emergency.by not in case.actor.roles:
        return (*found, Finding(code="emergency.not-yours", effect="refuse", values=values)), None
    told = tuple(_opened(one, emergency) for one in found)
    override = Override(
        by=emergency.by,
        ratify_by=emergency.ratify_by,
        within_s=emergency.within_s,
        because=case.reason or "",
        approvals=approvals,
        role=role if approvals else None,
        freezes=tuple(str(one.values["freeze"]) for one in told if one.code == "freeze.overridden"),
        locks=tuple(str(one.values["lock"]) for one in told if one.code == "lock.overridden"),
        evidence=tuple(str(one.values["what"]) for one in told if one.code == "evidence.skipped"),
    )
    if not override.anything:
        return (*told, Finding(code="emergency.not-needed", effect="note")), None
    values |= {"ratify_by": emergency.ratify_by, "within_s": emergency.within_s}
    return (*told, Finding(code="emergency.may", effect="warn", values=values)), override


def _opened(found: Finding, emergency: Emergency) -> Finding:
    if found.code == "freeze.in-force":
        return Finding(code="freeze.overridden", effect="warn", values=found.values)
    if found.code == "lock.after-rollback":
        return Finding(code="lock.overridden", effect="warn", values=found.values)
    if found.effect == "refuse" and found.code.startswith("evidence.") and emergency.evidence == "skipped":
        return Finding(code="evidence.skipped", effect="warn", values={**found.values, "what": found.code})
    return found


def _could(emergency: Emergency | None, found: Found) -> Found:
    """Whoever is refused by a freeze is told that there is a way for an emergency, and what it costs."""
    if emergency is None or all(one.code != "freeze.in-force" for one in found):
        return ()
    values: Values = {"role": emergency.by, "ratify_by": emergency.ratify_by, "within_s": emergency.within_s}
    return (Finding(code="emergency.could", effect="note", values=values),)
