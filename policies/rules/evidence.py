"""Recorded evidence that a value is worth having. Never asked of a revert or an unset."""

from __future__ import annotations

from policies.case import Case
from policies.evidence import Record
from policies.finding import Finding
from policies.fleet import EvidenceNeed

# trade_off, regresses, stale, outside, inconclusive and invalid satisfy none of them
ORDER = ("observed", "weak", "no_worse", "improves")
Values = dict[str, str | int | float | None]


def judge(case: Case) -> tuple[Finding, ...]:
    """For each matching rule that needs evidence: a record that is enough, or why the newest is not."""
    if case.knob is None or case.intent in {"revert", "unset"} or case.value is None:
        return ()
    needs = [(rule.evidence, rule.line) for rule in case.matching if rule.evidence is not None]
    return tuple(_one(case, case.knob.name, need, line) for need, line in needs)


def fitting(case: Case, knob: str, need: EvidenceNeed) -> list[Record]:
    """Records of this very knob, value and metric, newest first."""
    records = [r for r in case.evidence if r.knob == knob and r.value == case.value]
    records = [r for r in records if r.metric == need.metric]
    return sorted(records, key=lambda r: r.at, reverse=True)


def _one(case: Case, knob: str, need: EvidenceNeed, line: int) -> Finding:
    """The newest record that is enough; when none is, what is missing in the newest one."""
    values: Values = {
        "knob": knob,
        "value": case.value,
        "metric": need.metric,
        "at_least": need.at_least,
        "line": line,
    }
    judged = [_judged(record, need, case.now, values) for record in fitting(case, knob, need)]
    if not judged:
        return Finding(code="evidence.none", effect="refuse", values=values)
    return next((finding for finding in judged if finding.effect == "allow"), judged[0])


def _judged(record: Record, need: EvidenceNeed, now: float, about: Values) -> Finding:
    values: Values = {**about, "record": record.id, "klass": record.klass, "recorded_at": record.at}
    values["measured_at"] = record.measured_at
    values["max_age_s"] = need.max_age_s
    if need.max_age_s is not None and now - record.measured_at > need.max_age_s:
        return Finding(code="evidence.stale", effect="refuse", values=values)
    if record.klass not in ORDER:
        return Finding(code="evidence.not-good", effect="refuse", values=values)
    if ORDER.index(record.klass) < ORDER.index(need.at_least):
        return Finding(code="evidence.too-weak", effect="refuse", values=values)
    seen = record.correctness
    compared, differing = (seen.compared or 0, seen.differing or 0) if seen else (0, 0)
    if compared < need.correctness or (need.correctness > 0 and differing > 0):
        values |= {"compared": compared, "differing": differing, "needed": need.correctness}
        return Finding(code="evidence.no-correctness", effect="refuse", values=values)
    if record.repeats < need.repeats:
        values |= {"repeats": record.repeats, "needed": need.repeats}
        return Finding(code="evidence.too-few-repeats", effect="refuse", values=values)
    return Finding(code="evidence.enough", effect="allow", values=values)
