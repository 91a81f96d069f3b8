"""What may be said of a cause, with the readings: one line for each verdict."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from bot.escape import code
from bot.markup import Markup, joined
from bot.messages import say, sentence
from policies.causes.cause import Cause, Consistent, established
from policies.causes.verdict import Verdict
from policies.citation import Citation
from policies.states.state import Moved, State

MOST_WHY = 3
MOST_READINGS = 24


def cause_line(verdict: Verdict) -> Markup:
    """The cause where it is verified; else that none is established, what was measured and what that agrees with."""
    measured = readings(verdict.citations)
    match established(verdict):
        case Cause() as cause:
            return say("cause.is", cause=cause, measured=measured, before=readings(verdict.baseline))
        case Consistent() as found:
            return say("cause.consistent", found=found, measured=measured)
        case None:
            return say("cause.not-established-measured", measured=measured)


def reason_line(verdict: Verdict) -> Markup:
    """Why the verdict is what it is, what is not known, and what became of the rivals."""
    parts = [sentence(verdict.reason), *(sentence(finding) for finding in verdict.unknown[:MOST_WHY])]
    unknown = [f"{rival.name}" for rival in verdict.rivals if rival.word == "unknown"]
    refuted = [f"{rival.name}" for rival in verdict.rivals if rival.word == "refuted"]
    parts += [say("claim.not-ruled-out", names=", ".join(unknown))] if unknown else []
    parts += [say("claim.refuted-rivals", names=", ".join(refuted))] if refuted else []
    return joined(parts, "; ")


def state_line(state: State) -> Markup:
    """What an engine was doing and the progress it made; or what it may have been doing, and why that is open."""
    if len(state.possible) == 1:
        said = say("state.is", word=state.word)
    else:
        why = joined([sentence(finding) for finding in state.findings[:MOST_WHY]], "; ")
        said = say("state.open", words=" or ".join(state.possible), why=why)
    return joined([said, *(_moved(one) for one in state.moved[:MOST_WHY])], "; ")


def _moved(moved: Moved) -> Markup:
    unit = f" {moved.unit}" if moved.unit else ""
    return say(
        "state.moved", name=moved.name, by=moved.by, unit=unit, over_s=moved.over_s, rate=moved.by / moved.over_s
    )


def readings(citations: Sequence[Citation]) -> Markup:
    """`running_reqs=53 requests, queue_reqs=11 requests at 21:28:01`, one part for each moment."""
    if not citations:
        return say("reading.none")
    ordered = sorted(citations[:MOST_READINGS], key=lambda c: c.time)
    moments = (
        say("reading.at", readings=joined([reading(c) for c in group], ", "), at=at)
        for at, group in groupby(ordered, key=lambda c: c.time)
    )
    told = joined(list(moments), "; ")
    left = len(citations) - MOST_READINGS
    return say("reading.more", readings=told, n=left) if left > 0 else told


def reading(citation: Citation) -> Markup:
    """One reading by its name, or by its query."""
    name: str | Markup = citation.name or Markup(code(citation.query))
    unit = f" {citation.unit}" if citation.unit else ""
    if citation.most is not None and citation.most != citation.value:
        return say("reading.between", name=name, value=citation.value, most=citation.most, unit=unit)
    return say("reading.beyond" if citation.beyond else "reading.is", name=name, value=citation.value, unit=unit)
