"""What became of a claim about a cause, and the readings that say so."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from policies.citation import Citation
from policies.finding import Finding
from policies.model import Model

Word = Literal["verified", "consistent", "refuted", "unverified"]


class Rival(Model):
    """Another catalogued cause, and what the same readings say of it.

    holds: it explains the effect as well. refuted: its readings speak against it. unknown: `why` says what is missing.
    """

    name: str
    about: str
    word: Literal["holds", "refuted", "unknown"]
    citations: tuple[Citation, ...] = ()
    why: tuple[Finding, ...] = ()


class Verdict(Model):
    """One claim, judged. `name` and `about` are empty for a free statement, whose claim is its expression.

    verified: it holds on fresh readings, did not hold in the baseline, nothing speaks against it, no rival holds.
    consistent: it holds, and `reason` says what keeps it from being verified.
    refuted: its readings speak against it. unverified: the readings do not say.
    """

    word: Word
    name: str = ""
    about: str = ""
    needs: str = ""  # as it is written; empty when nothing was cited
    refuted_by: str = ""
    reason: Finding
    citations: tuple[Citation, ...] = ()  # of the effect window
    baseline: tuple[Citation, ...] = ()
    rivals: tuple[Rival, ...] = ()
    unknown: tuple[Finding, ...] = ()  # why something is not known

    @model_validator(mode="after")
    def _is_founded(self) -> Verdict:
        """A verdict that comes out of a file or a message must still stand on readings."""
        if self.word in {"verified", "consistent"} and not self.citations:
            message = f"a {self.word} cause cites what was measured, this one cites nothing"
            raise ValueError(message)
        if self.word == "verified" and not self.baseline:
            message = "a verified cause cites a baseline, this one has none"
            raise ValueError(message)
        if self.word == "verified" and any(rival.word == "holds" for rival in self.rivals):
            message = "a verified cause has no rival that holds"
            raise ValueError(message)
        return self

    @property
    def title(self) -> str:
        """What is claimed: the name of the catalogue, or the expression."""
        return self.name or self.needs
