"""The claim that a change did it: the effect came with the change and went when the change was taken back.

verified: the effect is there after the change, was not before it, is not there again in the old state, measured once
more; nothing else changed meanwhile, no cause of the catalogue explains it as well, and all three were measured at the
same load. Each of these that is missing leaves it at consistent, and all that is missing is named.
refuted: there is no effect, it was there before, the old state shows it as well, or what would be seen if it were the
change (`if_guilty` of its knob) was not.
Source: FACTS-serving 3.5, "before/after on the same points, one change only, and the old state re-measured".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from policies.causes.claim import Claim
from policies.causes.judge import rivals_in
from policies.causes.statement import Metric, Not, Statement, metrics_of
from policies.causes.truth import HOLDS, Truth, citations_of, distinct, truth_of
from policies.causes.verdict import Rival, Verdict, Word
from policies.causes.window import Window
from policies.finding import Finding

SAME_FACTOR, SAME_REQUESTS = 2.0, 2.0
"""Two loads are the same point when one is at most twice the other, or at most two requests more.

Ours: latency and throughput of an engine change with its batch, and points of an A/B are powers of two apart.
"""


@dataclass(frozen=True, slots=True)
class Blamed:
    """A change that is said to have had an effect.

    effect: what it is to have done, e.g. `ttft_s > 5`; None: nobody says. must: what would be seen beside it if the
    change did it, which alone shows nothing; None: that is not known of it. again: the old state, measured once more
    after `after`. others: what else changed from `before` to the last window; None where nobody looked. points:
    metrics that count requests, by whose sum windows are at the same load. rivals: causes of the catalogue.
    """

    change: str
    effect: Statement | None
    after: Window
    before: Window | None = None
    again: Window | None = None
    others: Sequence[str] | None = None
    points: Sequence[Metric] = ()
    rivals: Sequence[Claim] = ()
    must: Statement | None = None


def judge_change(blamed: Blamed, now: float) -> Verdict:
    """What the readings say of it. Units: epoch seconds."""
    effect, after, before, again = blamed.effect, blamed.after, blamed.before, blamed.again
    if max(after.end, again.end if again is not None else 0.0) > now:
        return _verdict(blamed, "unverified", _why(blamed, "claim.change-not-over"))
    guilty = truth_of(blamed.must, after) if blamed.must is not None else HOLDS
    if guilty.word == "fails":
        return _verdict(blamed, "refuted", _why(blamed, "claim.change-not-guilty", must=str(blamed.must)))
    if effect is None:
        return _verdict(blamed, "unverified", _why(blamed, "claim.change-no-effect-named"))
    seen = truth_of(effect, after)
    was = truth_of(effect, before) if before is not None else Truth("unknown")
    back = truth_of(effect, again) if again is not None else Truth("unknown")
    if seen.word == "fails":
        return _verdict(blamed, "refuted", _why(blamed, "claim.change-no-effect"))
    if seen.word == "unknown":
        return _verdict(blamed, "unverified", _why(blamed, "claim.change-not-known"), seen.why)
    if was.word == "holds":
        return _verdict(blamed, "refuted", _why(blamed, "claim.change-was-there-before"))
    if back.word == "holds":
        return _verdict(blamed, "refuted", _why(blamed, "claim.change-old-state-too"))
    missing = _missing(blamed, was, back)
    if guilty.word == "unknown":
        missing.append(_why(blamed, "claim.change-guilt-unknown", must=str(blamed.must)))
    if missing:
        return _verdict(blamed, "consistent", missing[0], (*missing[1:], *was.why, *back.why))
    return _verdict(blamed, "verified", _why(blamed, "claim.change-holds"))


def _missing(blamed: Blamed, was: Truth, back: Truth) -> list[Finding]:
    """What keeps an effect that is there from being the change's."""
    after, before, again = blamed.after, blamed.before, blamed.again
    found: list[Finding] = []
    if was.word == "unknown" or before is None or before.end >= after.start:
        found.append(_why(blamed, "claim.change-not-measured-before"))
    if blamed.others is None:
        found.append(_why(blamed, "claim.change-others-not-known"))
    elif blamed.others:
        found.append(_why(blamed, "claim.change-not-alone", others=", ".join(blamed.others)))
    if holding := [rival.name for rival in _rivals(blamed) if rival.word == "holds"]:
        found.append(_why(blamed, "claim.change-rivals-hold", rivals=", ".join(holding)))
    if back.word == "unknown" or again is None or again.start <= after.end:
        found.append(_why(blamed, "claim.change-old-state-not-measured"))
    if not found:  # all three were measured
        found += _unlike(blamed)
    return found


def _unlike(blamed: Blamed) -> list[Finding]:
    """Why the three windows are not, or not known to be, at the same load."""
    effect = metrics_of(blamed.effect) if blamed.effect is not None else ()
    points = [one for one in blamed.points if one not in effect]
    loads = [_load(one, points) for one in (blamed.before, blamed.after, blamed.again)]
    known = [load for load in loads if load is not None]
    if len(known) < len(loads):
        return [_why(blamed, "claim.change-load-unknown")]
    low, high = min(known), max(known)
    if high <= SAME_FACTOR * low or high - low <= SAME_REQUESTS:
        return []
    values = dict(zip(("before", "after", "again"), known, strict=True))
    return [_why(blamed, "claim.change-other-load", **values)]


def _load(window: Window | None, points: Sequence[Metric]) -> float | None:
    """Requests at one moment: the sum of what these metrics say, each by its median. None where one is unknown."""
    if window is None or not points:
        return None
    total = 0.0
    for metric in points:
        measured = window.of(metric)
        readings = window.within(measured) if measured is not None else ()
        if not readings or not all(reading.exact for reading in readings):
            return None
        total += median(reading.value for reading in readings)
    return total


def _rivals(blamed: Blamed) -> tuple[Rival, ...]:
    return rivals_in(blamed.rivals, blamed.after)


def _why(blamed: Blamed, code: str, **more: str | float) -> Finding:
    effect = {"effect": str(blamed.effect)} if blamed.effect is not None else {}
    return Finding(code=code, effect="note", values={"change": blamed.change, **effect, **more})


def _verdict(blamed: Blamed, word: Word, reason: Finding, why: Sequence[Finding] = ()) -> Verdict:
    cited = [one for one in (blamed.effect, blamed.must) if one is not None]
    citations = tuple(dict.fromkeys(c for one in cited for c in citations_of(one, blamed.after)))
    old = tuple(w for w in (blamed.before, blamed.again) if w is not None)
    baseline = tuple(c for w in old if blamed.effect is not None for c in citations_of(blamed.effect, w))
    if word in {"verified", "consistent"} and not citations:
        word, reason = "unverified", _why(blamed, "claim.change-not-known")
    return Verdict(
        word=word,
        name=blamed.change,
        about=f"the change {blamed.change}",
        needs=str(blamed.effect) if blamed.effect is not None else "",
        refuted_by=str(Not(blamed.must)) if blamed.must is not None else "",
        reason=reason,
        citations=citations,
        baseline=baseline,
        rivals=_rivals(blamed),
        unknown=distinct(why),
    )
