"""Recorded evidence that a value is worth having, and that holds today. Never asked of a revert or an unset."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from policies.applicability import Standing
from policies.case import Case
from policies.evidence import Record
from policies.finding import Finding
from policies.fleet import EvidenceNeed

# trade_off, regresses, stale, outside, inconclusive and invalid satisfy none of them
ORDER = ("observed", "weak", "no_worse", "improves")
HOLDS = ("valid", "weak")
Values = dict[str, str | int | float | None]


@dataclass(frozen=True, slots=True)
class Judged:
    """A record, what it is worth today, and what the rule has to say of it."""

    record: Record
    standing: Standing
    finding: Finding


def judge(case: Case) -> tuple[Finding, ...]:
    """For each matching rule that needs evidence: a record that is enough, or why the newest is not."""
    if case.knob is None or case.intent in {"revert", "unset"} or case.value is None:
        return ()
    needs = [(rule.evidence, rule.line) for rule in case.matching if rule.evidence is not None]
    return tuple(finding for need, line in needs for finding in _one(case, case.knob.name, need, line))


def fitting(case: Case, knob: str, need: EvidenceNeed) -> list[Record]:
    """Records of this very knob, value and metric, newest first."""
    records = [r for r in case.evidence if r.knob == knob and r.value == case.value and r.metric == need.metric]
    return sorted(records, key=lambda r: r.at, reverse=True)


def _one(case: Case, knob: str, need: EvidenceNeed, line: int) -> Iterable[Finding]:
    """The newest record that is enough; when none is, what is missing in the newest one."""
    values: Values = {
        "knob": knob,
        "value": case.value,
        "metric": need.metric,
        "at_least": need.at_least,
        "line": line,
    }
    judged = [_judged(record, need, case, values) for record in fitting(case, knob, need)]
    if not judged:
        return [Finding(code="evidence.none", effect="refuse", values=values)]
    enough = next((one.finding for one in judged if one.finding.effect == "allow"), None)
    if enough is not None:
        return [enough]
    return _overridden(judged[0], need, case)


def _overridden(judged: Judged, need: EvidenceNeed, case: Case) -> Iterable[Finding]:
    """The refusal, or a warning in its place where somebody who may do without says why.

    An override stands on a record that was made and looked at: where there is none, there is nothing to override.
    """
    found = judged.finding
    if need.override is None or need.override not in case.actor.roles:
        return [found]
    if not case.reason:
        may: Values = {"actor": case.actor.id, "role": need.override, "record": judged.record.id}
        return [found, Finding(code="evidence.could-override", effect="note", values=may)]
    values: Values = {"actor": case.actor.id, "role": need.override, "reason": case.reason[:300]}
    values |= {"record": judged.record.id, "klass": judged.record.klass, "standing": judged.standing.word}
    values |= {"at_least": need.at_least, "line": found.values["line"]}
    return [Finding(code="evidence.overridden", effect="warn", values=values)]


def _judged(record: Record, need: EvidenceNeed, case: Case, about: Values) -> Judged:
    found = case.standings.get(record.id, Standing(record=record.id, word="weak"))
    values: Values = {**about, "record": record.id, "klass": record.klass, "recorded_at": record.at}
    values |= {"measured_at": record.measured_at, "max_age_s": need.max_age_s}
    return Judged(record, found, _finding(record, need, case.now, found, values))


def _finding(record: Record, need: EvidenceNeed, now: float, found: Standing, values: Values) -> Finding:
    if record.klass not in ORDER:
        return Finding(code="evidence.not-good", effect="refuse", values=values)
    if need.max_age_s is not None and now - record.measured_at > need.max_age_s:
        return Finding(code="evidence.stale", effect="refuse", values=values)
    age = next((finding for finding in found.reasons if finding.code == "applies.age"), None)
    if age is not None:
        return Finding(code="evidence.stale", effect="refuse", values={**values, "max_age_s": age.values["max_age_s"]})
    if found.word not in HOLDS:
        return Finding(code="evidence.not-valid", effect="refuse", values={**values, **_why(found)})
    if ORDER.index(record.klass) < ORDER.index(need.at_least):
        return Finding(code="evidence.too-weak", effect="refuse", values=values)
    if found.word == "weak" and ORDER.index("weak") < ORDER.index(need.at_least):
        return Finding(code="evidence.weak-today", effect="refuse", values={**values, **_why(found)})
    return _answers(record, need, values)


def _answers(record: Record, need: EvidenceNeed, values: Values) -> Finding:
    """Correctness and repeats."""
    seen = record.correctness
    compared, differing = (seen.compared or 0, seen.differing or 0) if seen else (0, 0)
    tolerated = need.correctness_level >= 2  # a score that holds forgives prompts whose answers differ
    if compared < need.correctness or (need.correctness > 0 and differing > 0 and not tolerated):
        values |= {"compared": compared, "differing": differing, "needed": need.correctness}
        return Finding(code="evidence.no-correctness", effect="refuse", values=values)
    level = seen.level if seen is not None else 0
    if level < need.correctness_level:
        values |= {"level": level, "needed": need.correctness_level}
        return Finding(code="evidence.correctness-level", effect="refuse", values=values)
    if record.repeats < need.repeats:
        values |= {"repeats": record.repeats, "needed": need.repeats}
        return Finding(code="evidence.too-few-repeats", effect="refuse", values=values)
    return Finding(code="evidence.enough", effect="allow", values=values)


def _why(found: Standing) -> Values:
    """The standing in one value: its word and the fields that it comes from."""
    told: list[str] = []
    for finding in found.reasons:
        if finding.values["word"] != found.word:
            continue
        match finding.code:
            case "applies.differs":
                values = finding.values
                told.append(f"{values['field']}: recorded {values['recorded']}, today {values['today']}")
            case "applies.unknown":
                told.append(f"{finding.values['fields']} not known {finding.values['where']}")
            case "applies.flags" | "applies.knobs":
                told.append(f"{finding.code.partition('.')[2]} differ: {finding.values['differing']}")
            case "applies.load" | "applies.load-low":
                values = finding.values
                told.append(f"load: recorded {values['low']:g} to {values['high']:g}, today {values['today']:g}")
            case "applies.inert":
                told.append(f"the running build does not read {finding.values['variable']}")
            case _:
                told.append(f"not proven that the running build reads {finding.values.get('variable')}")
    return {"standing": found.word, "why": "; ".join(told) or "what runs today was not looked at"}
