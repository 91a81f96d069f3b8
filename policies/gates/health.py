"""Does the new process say that it is well? The smallest gate: copy it to start another."""

from __future__ import annotations

from policies.facts import HttpAnswer
from policies.finding import Verdict
from policies.gates import Values, failed, passed, undecided


def judge(instance: str, answer: HttpAnswer | None, *, confirmed: bool, waited_s: float) -> Verdict:
    """Pass on `confirmed`: as many 200s in a row as asked, all from one incarnation. A missing answer is no pass."""
    if answer is None:
        return undecided("gate.health.not-asked", {"instance": instance, "waited_s": waited_s})
    values: Values = {
        "instance": instance,
        "url": answer.url,
        "status": answer.status,
        "error": answer.error,
        "took_s": answer.took_s,
        "waited_s": waited_s,
    }
    if answer.status is None:
        return failed("gate.health.no-answer", values)
    if answer.status != 200:
        return failed("gate.health.status", values)
    if not confirmed:
        return undecided("gate.health.not-confirmed", values)
    return passed("gate.health.ok", values)
