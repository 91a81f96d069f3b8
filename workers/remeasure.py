"""The old state, measured again by itself: what was said of a change is judged once more after it was taken back.

A minute after a revert, a rollback or an undo has brought the old state back, statements that blame the change are
judged with it, and so is what a revert was made for. What is refuted then closes its Suspicion and offers the value
back; what is verified confirms it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from policies.causes.claim import Claim
from policies.causes.parsing import read_statement
from policies.causes.scanning import Malformed
from policies.change import Change
from policies.finding import Finding
from policies.intents import StateCause, Where
from policies.statement import Statement, claim_said
from workers.blamed import AGAIN_S, SETTLE_S, BlamedChanges, effect_of_blame, of_fleet
from workers.courses import Course, Courses
from workers.reserved import known, reserved
from workers.statements import Told, told_about

if TYPE_CHECKING:
    from workers.wiring import Wiring

LOG = structlog.get_logger(__name__)
EVERY_S = 5.0
RECENT = 20
LATEST_S = 600.0  # after that nobody waits for a watch that does not look, and later still nothing is judged by itself
OPEN = frozenset({"consistent", "unverified"})


class Remeasure:
    """Taken in turns (`workers.turns`). Raises everywhere: StoreUnavailable."""

    def __init__(self, wiring: Wiring) -> None:
        self._w = wiring
        self._courses = Courses(wiring)
        self._b = BlamedChanges(wiring, wiring.measuring)
        self._done: set[str] = set()

    def round(self) -> list[str]:
        """Judge what is due; the names of the statements that were made or judged again."""
        judged: list[str] = []
        for entry in reversed(self._w.ledger.index("changes")[-RECENT:]):
            if entry.subject in self._done:
                continue
            change = self._w.ledger.load(entry.subject)
            if not change.ended:
                continue
            course = self._courses.takes_back(change)
            if course is None or course.gone is None or self._w.clock() > course.gone + 2 * LATEST_S:
                self._done.add(change.id)
            elif (found := self._judge(change, course)) is not None:
                judged += found
                self._done.add(change.id)
        return judged

    def _due(self, course: Course, back_s: float) -> bool:
        """A minute of the old state is over, and the watch has looked whether anything else changed."""
        if course.gone is None or self._w.clock() < course.gone + SETTLE_S + back_s + AGAIN_S:
            return False
        return self._courses.watched_since(course.gone) or self._w.clock() > course.gone + LATEST_S

    def _judge(self, later: Change, course: Course) -> list[str] | None:
        """What was judged; None before it is due."""
        effect = self._effect(later, course)
        blaming = [told for told in self._told(later, course) if self._blames(told, course.change.id)]
        if effect is None and not blaming:
            return []
        needs = [told.standing.judged.verdict.needs for told in blaming] + ([effect] if effect is not None else [])
        if not self._due(course, max(self._back_s(text) for text in needs)):
            return None
        self._w.measuring.look()
        found = [told.statement.id for told in blaming if self._w.looks.truth.again(told.statement.id, later.id)]
        made = self._state(later, course, effect) if effect is not None else None
        return [*found, *([made] if made is not None else [])]

    def _back_s(self, text: str) -> float:
        found = read_statement(text) if text else None
        return self._b.back_s(None if isinstance(found, Malformed) else found)

    def _told(self, later: Change, course: Course) -> list[Told]:
        names = dict.fromkeys((later.id, course.change.id))
        return [told for name in names for told in told_about(self._w.ledger, name)]

    def _blames(self, told: Told, change: str) -> bool:
        """Whether a statement says that this change did it, and that is still open."""
        standing = told.standing
        claim = claim_said(told.statement.said, self._w.fleet)
        named = isinstance(claim, Claim) and claim.change is not None
        return named and standing.judged.verdict.name == change and standing.judged.verdict.word in OPEN

    def _effect(self, later: Change, course: Course) -> str | None:
        """What a revert cites and was seen when it was asked for; None where there is no such thing."""
        blame = later.planned.blame if later.planned is not None else None
        if blame is None or course.change.id == later.id:
            return None
        words = {v.word for v in blame.verdicts if not v.name or v.name == course.change.id}
        effect = effect_of_blame(blame) if words & {"verified", "consistent"} else None
        return str(effect) if effect is not None else None

    def _state(self, later: Change, course: Course, effect: str) -> str | None:
        """clawback's own statement that the change did it, as the old state says, below the revert."""
        key = f"st:again:{later.id}"
        if known(self._w.ledger, key) is not None:
            return None
        said = StateCause(text=f"{course.change.id} did it", of=later.id, citing=(effect,))
        claim = claim_said(said, self._w.fleet)
        if isinstance(claim, Finding):  # the fleet file has lost a metric that it stands on
            LOG.info("an old state is not judged", change=later.id, why=claim.code)
            return None
        judged = self._b.judged(self._b.named(claim, None), of_fleet(self._w.fleet, later))
        where = later.asked.where if later.asked is not None else Where()
        statement = Statement(
            id=reserved(self._w.ledger, "st", key),
            said=said,
            actor=None,
            where=Where(channel=where.channel),
            about=later.id,
            judged=judged,
        )
        self._w.looks.truth.record(statement)
        return statement.id
