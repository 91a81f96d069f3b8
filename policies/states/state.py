"""The state of an engine, with the readings that it stands on and what kept it from being known."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from policies.causes.statement import StateWord
from policies.citation import Citation
from policies.finding import Finding
from policies.model import Model

Word = Literal["idle", "busy", "hung", "saturated", "not_proven"]


class Moved(Model):
    """A counter of progress between two looks. Units: over_s is how far apart they were; by has `unit`."""

    name: str
    by: float
    unit: str
    over_s: float


class State(Model):
    """`possible` holds every word that the readings leave open; the state is known when it is one.

    A saturated engine is a busy one in which requests wait and do not get fewer.
    `has_work`: what the engine itself tells of the last moment; None where its readings do not say.
    `unknown` names what could not be read or decided, each with its finding in `findings`.
    """

    possible: tuple[StateWord, ...]
    citations: tuple[Citation, ...] = ()
    unknown: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    has_work: bool | None = None
    moved: tuple[Moved, ...] = ()  # what progress was made, the counters that people know first
    started_at: float | None = None  # start of the process that answered last, epoch seconds

    @model_validator(mode="after")
    def _something_is_possible(self) -> State:
        if not self.possible:
            message = "an engine is in some state, none is left possible"
            raise ValueError(message)
        return self

    @property
    def word(self) -> Word:
        """The state, or `not_proven`."""
        return self.possible[0] if len(self.possible) == 1 else "not_proven"

    def is_in(self, word: StateWord) -> bool | None:
        """Whether it is so; None when it may be. A saturated engine is busy too."""
        named = {word, "saturated"} if word == "busy" else {word}
        if set(self.possible) <= named:
            return True
        return None if named & set(self.possible) else False
