"""Gates: one question each between two steps, answered with a Verdict. No data is never pass.

Add one by copying `health.py`, naming it in `policies.plan.GateKind` and asking it in `workers.gatekeeper`.
"""

from __future__ import annotations

from policies.finding import Finding, Verdict

Values = dict[str, str | int | float | None]


def passed(code: str, values: Values) -> Verdict:
    """A verdict `pass` with its reading."""
    return Verdict(answer="pass", findings=(Finding(code=code, effect="allow", values=values),))


def failed(code: str, values: Values) -> Verdict:
    """A verdict `fail` with what was read and expected."""
    return Verdict(answer="fail", findings=(Finding(code=code, effect="refuse", values=values),))


def undecided(code: str, values: Values) -> Verdict:
    """A verdict `inconclusive`: there was no reading that decides."""
    return Verdict(answer="inconclusive", findings=(Finding(code=code, effect="refuse", values=values),))


def readable(text: str) -> str:
    """The text with lone surrogates, which an engine's JSON may hold and no event can, shown as `\\udXXX`."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
