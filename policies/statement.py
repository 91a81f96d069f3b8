"""A statement about why something happened: who made it, in which words, and what the readings said of it.

Made by a person (`/cause ...`), or by clawback itself about a slow probe. What is recorded is the verdict; which words
may be printed of it is decided by `policies.causes.cause`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from policies.causes.claim import Claim, catalogued, free, named_in
from policies.causes.named_change import change_blamed, change_id
from policies.causes.statement import Every, InState, StateWord, state_words
from policies.causes.verdict import Verdict
from policies.citation import Citation
from policies.finding import Finding
from policies.fleet import Fleet
from policies.intents import Actor, StateCause, Where
from policies.model import Model
from policies.probe import Probe
from policies.states.state import State

Word = Literal["verified", "consistent", "refuted", "unverified"]
STRENGTH: dict[str, int] = {"verified": 2, "consistent": 1, "refuted": 0, "unverified": 0}


class Times(Model):
    """A window. Units: epoch seconds."""

    start: float
    end: float


class Judgement(Model):
    """What the readings said of a claim: the verdict, what the catalogue's causes came to, state and load meanwhile.

    others: verdicts of catalogued causes that the readings agree with, the claimed one left out. again: of a claim
    that a change did it, when the old state was measured once more.
    """

    at: float
    effect: Times
    baseline: Times | None
    ongoing: bool = False  # the effect was there when it was judged, so that its baseline ends where it began
    verdict: Verdict
    others: tuple[Verdict, ...] = ()
    state: State | None = None
    load: tuple[Citation, ...] = ()
    again: Times | None = None


class Statement(Model):
    """What was said, by whom, where, about which change (None: what is seen now), and the judgement on it.

    actor None: clawback said it itself: of the slow `probe`; without one, when an old state was measured again.
    """

    id: str
    said: StateCause
    actor: Actor | None
    where: Where
    about: str | None
    judged: Judgement
    probe: Probe | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """How a statement stands after what was said against it: the newest judgement, and whether it is struck through."""

    judged: Judgement
    struck: bool


def claim_said(said: StateCause, fleet: Fleet) -> Claim | Finding:
    """The claim behind somebody's words; a finding where an expression cannot be read or a name is unknown.

    Words that name one cause of the catalogue, or a state of an engine, mean that; what is cited must hold beside it.
    Words that blame a change claim that it did it, and what is cited is what it did. Words that name nothing claim only
    what is cited: of such a statement nothing but the expression is ever printed.
    """
    cited = free(said.citing, fleet)
    if isinstance(cited, Finding):
        return cited
    names = (said.name,) if said.name is not None else named_in(said.text or "", fleet.causes.values())
    if said.name is not None and (change := change_id(said.name)) is not None:
        return Claim(cited.needs, change=change)
    if any(name not in fleet.causes for name in names):
        return Finding(code="statement.no-such-cause", effect="refuse", values={"name": said.name})
    if len(names) > 1:
        return Finding(code="statement.names-several", effect="refuse", values={"names": ", ".join(names)})
    if names:
        named = catalogued(fleet.causes[names[0]])
        if isinstance(named, Finding) or named.needs is None or cited.needs is None:
            return named
        return Claim(Every((named.needs, cited.needs)), named.refuted_by, named.name, named.about)
    state = state_named(said.text or "")
    if state is None:
        blamed = change_blamed(said.text or "")
        return Claim(cited.needs, change=blamed) if blamed is not None else cited
    return Claim(InState(state) if cited.needs is None else Every((InState(state), cited.needs)))


def state_named(text: str) -> StateWord | None:
    """The state of an engine that words are, and nothing else: `busy`, `the engine is hung`."""
    words = text.lower().removeprefix("the ").split()
    return next((word for word in state_words if words in ([word], ["engine", word], ["engine", "is", word])), None)


def after(made: Judgement, again: Sequence[Judgement]) -> Standing:
    """A statement with the judgements that disputes led to, oldest first.

    It is struck through as soon as one of them no longer carries what was said: weaker than it was, or nothing at all.
    """
    struck = any(STRENGTH[one.verdict.word] < max(1, STRENGTH[made.verdict.word]) for one in again)
    return Standing(again[-1] if again else made, struck)
