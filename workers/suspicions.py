"""Suspicions as the ledger has them: what became of each, what it costs now, how to get it back, and whom to remind."""

from __future__ import annotations

from dataclasses import dataclass

from policies import events as e
from policies import suspicion as su
from policies.change import Change
from policies.errors import LedgerConflict
from policies.estimate import estimate
from policies.evidence import Record
from policies.fleet import Fleet
from policies.plan import Estimate
from policies.planning.steps import instances_of
from policies.planning.turns import Changing
from policies.planning.waves import Course, course
from policies.suspicion import Claim, Standing, Suspicion
from workers.boots import boots
from workers.ledger import Ledger
from workers.statements import told_about

SAME_DAY_S = 86_400.0  # what was changed so close to a revert belongs to the same trouble, as far as a ledger can tell
MOST_BESIDE = 20


@dataclass(frozen=True, slots=True)
class Way:
    """A restart order by which a value could be given back. `estimate` None: not all its restarts are recorded."""

    order: str
    instances: tuple[str, ...]
    estimate: Estimate | None


@dataclass(frozen=True, slots=True)
class Kept:
    """A Suspicion with everything that is told about it.

    record: what the value is worth, as recorded by now. beside: changes of the same day that are no reverts on
    suspicion, and stay as they are.
    """

    suspicion: Suspicion
    standing: Standing
    asked: e.Asked
    record: Record | None
    ways: tuple[Way, ...]
    beside: tuple[Change, ...]


class Suspicions:
    """Reads the ledger; records nothing but reminders. Raises everywhere: StoreUnavailable."""

    def __init__(self, ledger: Ledger, fleet: Fleet) -> None:
        self._ledger = ledger
        self._fleet = fleet

    def all(self) -> list[tuple[Suspicion, Standing]]:
        """Every one, oldest first, with what became of it."""
        return [(suspicion, self.standing(suspicion, seq)) for suspicion, seq in self._recorded()]

    def find(self, suspicion: str) -> tuple[Suspicion, Standing] | None:
        """One by its id; None when there is none."""
        return next((found for found in self.all() if found[0].id == suspicion), None)

    def kept(self, suspicion: Suspicion, standing: Standing) -> Kept:
        """One with what is told about it."""
        now = set(suspicion.now.values())
        events = [x.event for x in self._ledger.index(f"evidence:{suspicion.knob}")]
        records = [event.record for event in events if isinstance(event, e.EvidenceRecorded)]
        baseline = now.pop() if len(now) == 1 else None
        asked = self._ledger.load(suspicion.change).asked
        if asked is None:
            raise RuntimeError(f"{suspicion.change} succeeded and nobody asked for it")
        return Kept(
            suspicion,
            standing,
            asked,
            su.priced(records, suspicion.knob, suspicion.value, baseline),
            self._ways(suspicion.knob),
            self._beside(suspicion),
        )

    def standing(self, suspicion: Suspicion, seq: int) -> Standing:
        """What became of one. seq: place of its revert's success in the ledger."""
        return su.standing(suspicion, self._claims(suspicion, seq))

    def remind(self, now: float) -> list[str]:
        """Record a reminder for each review date that has come; the ids of the suspicions whose reminder is new."""
        reminded: list[str] = []
        for suspicion, seq in self._recorded():
            if now < suspicion.review_at:
                continue
            before = self._ledger.entries(suspicion.id)
            dates = [x.event.due_at for x in before if isinstance(x.event, e.SuspicionReminded)]
            date = su.due(suspicion, dates[-1] if dates else None, now)
            if date is None or not self.standing(suspicion, seq).is_lost:
                continue
            try:
                self._ledger.append(suspicion.id, e.SuspicionReminded(due_at=date), expect_version=len(before))
            except LedgerConflict:
                continue  # another process was first
            reminded.append(suspicion.id)
        return reminded

    def _recorded(self) -> list[tuple[Suspicion, int]]:
        found = [
            (x.event.suspicion, x.seq) for x in self._ledger.index("suspicions") if isinstance(x.event, e.Succeeded)
        ]
        return [(suspicion, seq) for suspicion, seq in found if suspicion is not None]

    def _claims(self, suspicion: Suspicion, seq: int) -> list[Claim]:
        found = [
            (x.seq, Claim("reclaimed", x.subject, x.at, tuple(x.event.now.items())))
            for x in self._ledger.index(f"knob:{suspicion.knob}")
            if x.seq > seq and isinstance(x.event, e.Succeeded)
        ]
        found += self._settling(suspicion)
        return [claim for _, claim in sorted(found, key=lambda one: one[0])]

    def _settling(self, suspicion: Suspicion) -> list[tuple[int, Claim]]:
        """What statements about the revert make of it, with the place in the ledger of what counts of each now."""
        statements = [
            told for told in told_about(self._ledger, suspicion.change) if told.statement.probe is None and told.counts
        ]
        if not statements:
            return []
        planned = self._ledger.load(suspicion.change).planned
        blame = planned.blame if planned is not None else None
        found: list[tuple[int, Claim]] = []
        for told in statements:
            verdict, last = told.standing.judged.verdict, told.entries[-1]
            word = su.settled_by(blame, verdict)
            if word is not None:
                found.append((last.seq, Claim(word, told.statement.id, last.at)))
        return found

    def _ways(self, knob: str) -> tuple[Way, ...]:
        known = self._fleet.knobs.get(knob)
        if known is None:
            return ()
        recorded = boots(self._ledger, self._fleet)
        changed = [i for service in known.on for i in self._fleet.instances(service)]
        found: list[Way] = []
        for order in known.restarts:
            names = instances_of(self._fleet, order)
            way = course(self._fleet, names, Changing(changed))
            stages = [stage.instances for stage in way.do] if isinstance(way, Course) else [(name,) for name in names]
            found.append(Way(order, names, estimate(stages, recorded)))
        return tuple(found)

    def _beside(self, suspicion: Suspicion) -> tuple[Change, ...]:
        found: list[Change] = []
        for entry in reversed(self._ledger.index("changes")):
            if entry.at < suspicion.at - SAME_DAY_S or len(found) == MOST_BESIDE:
                break
            change = self._ledger.load(entry.subject)
            if change.state == "succeeded" and entry.at <= suspicion.at + SAME_DAY_S and stays(change, suspicion):
                found.append(change)
        return tuple(reversed(found))


def stays(change: Change, suspicion: Suspicion) -> bool:
    """Whether a change is no revert on suspicion, does not give this one back, and altered a value."""
    last = change.last
    if not isinstance(last, e.Succeeded) or change.id == suspicion.change:
        return False
    return last.suspicion is None and last.knob not in {None, suspicion.knob}
