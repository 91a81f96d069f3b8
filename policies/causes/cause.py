"""A cause: the only value from which a sentence that states one can be made."""

from __future__ import annotations

from dataclasses import dataclass

from policies.causes.verdict import Verdict
from policies.errors import CauseNotVerified


@dataclass(frozen=True, slots=True)
class Cause:
    """What the readings of a verified verdict establish. There is no other way to make one.

    Raises: CauseNotVerified for any other verdict.
    """

    verdict: Verdict

    def __post_init__(self) -> None:
        if self.verdict.word != "verified":
            raise CauseNotVerified(
                f"`{self.verdict.title}` is {self.verdict.word}, expected a verified cause",
                hint="say that no cause is established, and what was measured",
            )


@dataclass(frozen=True, slots=True)
class Consistent:
    """What the readings agree with and do not establish.

    Raises: CauseNotVerified for a verdict that is not `consistent`.
    """

    verdict: Verdict

    def __post_init__(self) -> None:
        if self.verdict.word != "consistent":
            raise CauseNotVerified(
                f"`{self.verdict.title}` is {self.verdict.word}, expected a consistent one",
                hint="say that no cause is established, and what was measured",
            )


def established(verdict: Verdict) -> Cause | Consistent | None:
    """The strongest thing that may be said of a verdict; None: only what was measured."""
    match verdict.word:
        case "verified":
            return Cause(verdict)
        case "consistent":
            return Consistent(verdict)
        case "refuted" | "unverified":
            return None
