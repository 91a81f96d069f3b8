"""What was read at the moment at which a knob was blamed, and what that says of the reason that was given.

`if_guilty` of the knob is what would have to be seen if it did it; the causes that the reason names, or the expressions
that it cites, are judged like any other claim; and what else changed since the value came is listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from policies.causes.claim import Claim, catalogued, free, named_in
from policies.causes.named_change import change_blamed
from policies.causes.parsing import read_statement
from policies.causes.scanning import Malformed
from policies.causes.statement import Statement
from policies.causes.truth import citations_of, truth_of
from policies.causes.verdict import Verdict
from policies.causes.window import Window
from policies.citation import Citation
from policies.finding import Finding
from policies.fleet import Fleet, Knob
from policies.model import Model
from policies.statement import Times
from policies.states.state import State

Guilty = Literal["holds", "fails", "unknown"]


class Beside(Model):
    """Another change since the blamed value came, as it was asked. Units: at is epoch seconds."""

    change: str
    said: str
    at: float


class Guilt(Model):
    """What would have to be seen if the knob did it, and whether it was. why: what keeps it from being known."""

    if_guilty: str
    word: Guilty
    citations: tuple[Citation, ...] = ()
    why: tuple[Finding, ...] = ()


class Blame(Model):
    """A revert's reason, judged at once.

    guilt None: the knob has no `if_guilty`. verdicts: of the causes that the reason names, or of what it cites;
    unread: why an expression could not be judged. since: when the blamed value came, None where that is not recorded;
    beside: what else changed after it, else in the last day, newest last, `beside_left` more not listed.
    """

    at: float
    effect: Times
    baseline: Times | None
    guilt: Guilt | None = None
    state: State | None = None
    load: tuple[Citation, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    unread: tuple[Finding, ...] = ()
    since: float | None = None
    brought_by: str | None = None
    beside: tuple[Beside, ...] = ()
    beside_left: int = 0

    @property
    def hangs_on(self) -> tuple[str, ...]:
        """Titles of what the revert was made on."""
        return tuple(verdict.title for verdict in self.verdicts)

    @property
    def cause(self) -> Verdict | None:
        """The verified cause on which the revert stands; None: it is made on suspicion.

        A verified cause does not carry it where the knob's own `if_guilty` was not seen.
        """
        if self.guilt is not None and self.guilt.word != "holds":
            return None
        return next((verdict for verdict in self.verdicts if verdict.word == "verified"), None)


def claims_of(reason: str, citing: Sequence[str], fleet: Fleet) -> tuple[tuple[Claim, ...], tuple[Finding, ...]]:
    """The claims behind a revert's reason, and why something in it cannot be judged.

    A reason that blames a change claims that it did it, and what is cited is what it did.
    """
    found: list[Claim] = []
    unread: list[Finding] = []
    for name in named_in(reason, fleet.causes.values()):
        claim = catalogued(fleet.causes[name])
        if isinstance(claim, Finding):
            unread.append(claim)
        else:
            found.append(claim)
    cited = free(citing, fleet)
    change = None if found else change_blamed(reason)
    if isinstance(cited, Finding):
        unread.append(cited)
    elif change is not None:
        found.append(Claim(cited.needs, change=change))
    elif cited.needs is not None:
        found.append(cited)
    return tuple(found), tuple(unread)


def if_guilty(knob: Knob) -> Statement | None:
    """What would be seen if the knob did it; None where nobody said so, or it cannot be read (`fleet check` says)."""
    statement = read_statement(knob.if_guilty) if knob.if_guilty else None
    return None if isinstance(statement, Malformed) else statement


def guilt_of(knob: Knob, window: Window) -> Guilt | None:
    """What `if_guilty` of the knob came to; None where it has none."""
    statement = if_guilty(knob)
    if statement is None:
        return None
    truth = truth_of(statement, window)
    return Guilt(if_guilty=str(statement), word=truth.word, citations=citations_of(statement, window), why=truth.why)
