"""Does the engine report the setting that another service has, so that their contract holds?"""

from __future__ import annotations

from policies.facts import HttpAnswer
from policies.finding import Finding, Verdict
from policies.gates import Values, failed, passed, undecided
from policies.gates.reported import reported_value
from policies.plan import Agreement


def judge(agreement: Agreement, answer: HttpAnswer | None, wanted: str) -> Verdict:
    """Pass when the engine reports exactly what the other side has."""
    values: Values = {"instance": agreement.instance, "contract": agreement.contract, "path": agreement.path}
    values |= {"wanted": wanted}
    said = reported_value(answer.body, agreement.path) if answer is not None and answer.status == 200 else None
    if said is None:
        return undecided("gate.contract.not-told", values)
    values["reported"] = said
    return passed("gate.contract.holds", values) if said == wanted else failed("gate.contract.broken", values)


def all_of(verdicts: list[Verdict]) -> Verdict:
    """The worst of several, with what all of them found."""
    findings: tuple[Finding, ...] = tuple(f for one in verdicts for f in one.findings)
    for answer in ("fail", "error", "inconclusive"):
        if any(one.answer == answer for one in verdicts):
            return Verdict.model_validate({"answer": answer, "findings": findings})
    return Verdict(answer="pass", findings=findings)
