"""The claim that the last change did it: the effect came with the change and went when the change was taken back.

verified: the effect is there after the change, was not before it, is not there again in the old state, measured once
more, and nothing else changed between the first two windows. Each of these that is missing leaves it at consistent.
refuted: there is no effect, it was there before, or the old state shows it as well.
Source: FACTS-serving 3.5, "before/after on the same points, one change only, and the old state re-measured".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policies.causes.statement import Statement
from policies.causes.truth import Truth, citations_of, distinct, truth_of
from policies.causes.verdict import Verdict, Word
from policies.causes.window import Window
from policies.finding import Finding


@dataclass(frozen=True, slots=True)
class Blamed:
    """A change that is said to have had an effect.

    effect: what must be seen, e.g. `ttft_s > 5`. others: what else changed between `before` and `after`; None where
    nobody looked. again: the old state, measured once more after `after`.
    """

    change: str
    effect: Statement
    after: Window
    before: Window | None = None
    again: Window | None = None
    others: Sequence[str] | None = None


def judge_change(blamed: Blamed, now: float) -> Verdict:
    """What the readings say of it. Units: epoch seconds."""
    effect, after, before, again = blamed.effect, blamed.after, blamed.before, blamed.again
    if max(after.end, again.end if again is not None else 0.0) > now:
        return _verdict(blamed, "unverified", "claim.change-not-over")
    seen = truth_of(effect, after)
    was = truth_of(effect, before) if before is not None else Truth("unknown")
    back = truth_of(effect, again) if again is not None else Truth("unknown")
    if seen.word == "fails":
        return _verdict(blamed, "refuted", "claim.change-no-effect")
    if seen.word == "unknown":
        return _verdict(blamed, "unverified", "claim.change-not-known", why=seen.why)
    if was.word == "holds":
        return _verdict(blamed, "refuted", "claim.change-was-there-before")
    if back.word == "holds":
        return _verdict(blamed, "refuted", "claim.change-old-state-too")
    if was.word == "unknown" or before is None or before.end >= after.start:
        return _verdict(blamed, "consistent", "claim.change-not-measured-before", why=was.why)
    if blamed.others is None:
        return _verdict(blamed, "consistent", "claim.change-others-not-known")
    if blamed.others:
        return _verdict(blamed, "consistent", "claim.change-not-alone", others=", ".join(blamed.others))
    if back.word == "unknown" or again is None or again.start <= after.end:
        return _verdict(blamed, "consistent", "claim.change-old-state-not-measured", why=back.why)
    return _verdict(blamed, "verified", "claim.change-holds")


def _verdict(blamed: Blamed, word: Word, code: str, *, others: str = "", why: tuple[Finding, ...] = ()) -> Verdict:
    values: dict[str, str | int | float | None] = {"change": blamed.change, "effect": str(blamed.effect)}
    citations = citations_of(blamed.effect, blamed.after)
    old = tuple(w for w in (blamed.before, blamed.again) if w is not None)
    baseline = tuple(c for w in old for c in citations_of(blamed.effect, w))
    if word in {"verified", "consistent"} and not citations:
        word, code = "unverified", "claim.change-not-known"
    return Verdict(
        word=word,
        name=blamed.change,
        about=f"the change {blamed.change}",
        needs=str(blamed.effect),
        reason=Finding(code=code, effect="note", values=values | ({"others": others} if others else {})),
        citations=citations,
        baseline=baseline,
        unknown=distinct(why),
    )
