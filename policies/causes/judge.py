"""A claim, judged on what was measured while the effect was there and before it was.

verified: `needs` holds in the effect window and not in the baseline, `refuted_by` does not hold, and no rival does.
consistent: `needs` holds and `refuted_by` is not known to, but there is no baseline that says no, or a rival holds too.
refuted: `refuted_by` holds, or `needs` does not. unverified: nothing was cited, or the readings do not say.
A rival whose readings do not say is named in the verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from policies.causes.claim import Claim
from policies.causes.statement import Statement
from policies.causes.truth import FAILS, Truth, citations_of, distinct, truth_of
from policies.causes.verdict import Rival, Verdict, Word
from policies.causes.window import Window
from policies.citation import Citation
from policies.finding import Finding

Values = dict[str, str | int | float | None]


def judge(claim: Claim, effect: Window, baseline: Window | None, rivals: Sequence[Claim], now: float) -> Verdict:
    """What the readings say of a claim.

    rivals: the causes of the catalogue; the claim itself is left out by its name. now: what is measured after it
    would be of another clock.
    Units: epoch seconds.
    """
    case = _Case(claim, effect, rivals_in([rival for rival in rivals if rival.name != claim.name], effect))
    if claim.needs is None:
        return case.verdict("unverified", "claim.nothing-cited")
    if effect.end > now:
        return case.verdict("unverified", "claim.not-over", {"end": effect.end, "now": now})
    holds, against = truth_of(claim.needs, effect), _against(claim, effect)
    needs: Values = {"needs": str(claim.needs)}
    refuted_by: Values = {"refuted_by": str(claim.refuted_by)}
    if against.word == "holds":
        return case.verdict("refuted", "claim.spoken-against", refuted_by)
    if holds.word == "fails":
        return case.verdict("refuted", "claim.does-not-hold", needs)
    if holds.word == "unknown":
        return case.verdict("unverified", "claim.not-known", needs, why=distinct((*holds.why, *against.why)))
    if against.word == "unknown":
        return case.verdict("consistent", "claim.refutation-unknown", needs | refuted_by, why=against.why)
    if holding := [rival.name for rival in case.rivals if rival.word == "holds"]:
        return case.verdict("consistent", "claim.rivals-hold", needs | {"rivals": ", ".join(holding)})
    return _against_baseline(case, claim.needs, baseline)


def _against_baseline(case: _Case, needs: Statement, baseline: Window | None) -> Verdict:
    """What holds now explains a difference only if it did not hold before."""
    values: Values = {"needs": str(needs)}
    if baseline is None:
        return case.verdict("consistent", "claim.no-baseline", values)
    if baseline.end >= case.effect.start:
        values |= {"end": baseline.end, "start": case.effect.start}
        return case.verdict("consistent", "claim.baseline-not-before", values)
    before, cited = truth_of(needs, baseline), citations_of(needs, baseline)
    if before.word == "holds":
        return case.verdict("consistent", "claim.held-before", values, baseline=cited)
    if before.word == "unknown" or not cited:
        return case.verdict("consistent", "claim.baseline-unknown", values, baseline=cited, why=before.why)
    return case.verdict("verified", "claim.holds", values, baseline=cited)


@dataclass(frozen=True, slots=True)
class _Case:
    """What every verdict about one claim has in common."""

    claim: Claim
    effect: Window
    rivals: tuple[Rival, ...]

    def verdict(
        self,
        word: Word,
        code: str,
        values: Values | None = None,
        *,
        why: tuple[Finding, ...] = (),
        baseline: tuple[Citation, ...] = (),
    ) -> Verdict:
        claim = self.claim
        citations = _cited(claim, self.effect)
        if word in {"verified", "consistent"} and not citations:
            word, code, values = "unverified", "claim.nothing-cited", None
        return Verdict(
            word=word,
            name=claim.name,
            about=claim.about,
            needs=str(claim.needs) if claim.needs is not None else "",
            refuted_by=str(claim.refuted_by) if claim.refuted_by is not None else "",
            reason=Finding(code=code, effect="note", values=values or {}),
            citations=citations,
            baseline=baseline,
            rivals=self.rivals,
            unknown=why,
        )


def rivals_in(rivals: Sequence[Claim], effect: Window) -> tuple[Rival, ...]:
    """What the readings of an effect say of each of these."""
    return tuple(_rival(rival, effect) for rival in rivals)


def _rival(rival: Claim, effect: Window) -> Rival:
    holds = truth_of(rival.needs, effect) if rival.needs is not None else FAILS
    against = _against(rival, effect)
    word: Literal["holds", "refuted", "unknown"] = "unknown"
    if against.word == "holds" or holds.word == "fails":
        word = "refuted"
    elif holds.word == "holds":
        word = "holds"
    return Rival(
        name=rival.name,
        about=rival.about,
        word=word,
        citations=_cited(rival, effect),
        why=distinct((*holds.why, *against.why)) if word == "unknown" else (),
    )


def _against(claim: Claim, window: Window) -> Truth:
    return truth_of(claim.refuted_by, window) if claim.refuted_by is not None else FAILS


def _cited(claim: Claim, window: Window) -> tuple[Citation, ...]:
    found = [c for one in (claim.needs, claim.refuted_by) if one is not None for c in citations_of(one, window)]
    return tuple(dict.fromkeys(found))
