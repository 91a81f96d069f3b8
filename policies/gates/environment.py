"""Is the value in the environment of the processes that run?"""

from __future__ import annotations

from policies.finding import Verdict
from policies.gates import Values
from policies.proof import Proof


def judge(proof: Proof) -> Verdict:
    """Pass on the verdict `live`; `not_live` and `mixed` fail; `unproven` is inconclusive. Findings are the proof's."""
    answers: dict[str, str] = {"live": "pass", "not_live": "fail", "mixed": "fail", "unproven": "inconclusive"}
    values: Values = {
        "instance": proof.instance,
        "variable": proof.variable,
        "wanted": proof.wanted,
        "rung": proof.rung,
    }
    finding = {
        "code": f"gate.environment.{proof.verdict.replace('_', '-')}",
        "effect": "allow" if proof.verdict == "live" else "refuse",
        "values": values,
    }
    return Verdict.model_validate({"answer": answers[proof.verdict], "findings": (finding, *proof.findings)})
