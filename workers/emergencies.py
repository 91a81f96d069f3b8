"""Overrides that wait for a second person: who may ratify is reminded once, and what nobody ratified is taken back.

Each turn looks at what is recorded and does the next thing, by compare-and-set under names that are reserved first: a
turn may end anywhere, be taken twice or by several processes, and every override is settled once.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from policies import events as e
from policies.change import Change
from policies.emergency import OURS, lapses, ratification, remind_at, way_back
from policies.errors import LedgerConflict
from policies.finding import Finding
from policies.fleet import Fleet
from workers.ledger import Ledger
from workers.queue import Doorbell
from workers.reserved import reserved


class Emergencies:
    """`clock` gives epoch seconds. Raises: StoreUnavailable."""

    def __init__(self, ledger: Ledger, doorbell: Doorbell, fleet: Fleet, clock: Callable[[], float]) -> None:
        self._ledger = ledger
        self._doorbell = doorbell
        self._fleet = fleet
        self._clock = clock
        self._settled: set[int] = set()  # confirmations that nothing more comes of

    def turn(self) -> None:
        """Do what is due."""
        for entry in self._ledger.index("emergencies"):
            if entry.seq in self._settled:
                continue
            change = self._ledger.load(entry.subject)
            with suppress(LedgerConflict):  # something else was recorded in this moment: the next turn looks again
                if self._one(change):
                    self._settled.add(entry.seq)

    def _one(self, change: Change) -> bool:
        """Whether nothing more comes of it."""
        found, now, due = ratification(change), self._clock(), remind_at(change)
        match found.word:
            case "none" | "moot" | "ratified":  # none: planned again, and confirmed anew it is another entry
                return True
            case "lapsed":
                return self._take_back(change)
            case "open" if lapses(change, now):
                self._record(change, self._lapsed(change))
                return self._take_back(self._ledger.load(change.id))
            case "open" if due is not None and due <= now < found.until:
                self._record(change, e.RatifyReminded())
        return False

    def _lapsed(self, change: Change) -> e.Lapsed:
        """The end of the time, with what takes the change back."""
        plan = change.plan
        if change.state == "held" and plan is not None and plan.undo:
            return e.Lapsed(undo=change.id)
        back = way_back(change, self._newest(change))
        if isinstance(back, Finding):
            return e.Lapsed(findings=(back,))
        return e.Lapsed(undo=reserved(self._ledger, "C", f"takes-back-{change.id}"), back=back)

    def _newest(self, change: Change) -> str | None:
        plan = change.plan
        if plan is None:
            return None
        of = f"knob:{plan.knob}" if plan.deploy is None else f"version:{plan.deploy.service}"
        ends = self._ledger.index(of)
        return ends[-1].subject if ends else None

    def _take_back(self, change: Change) -> bool:
        lapsed = change.lapsed
        if lapsed is None or lapsed.undo is None or change.asked is None:
            return True
        if lapsed.undo == change.id:
            if change.state != "held" or change.undoing:
                return True
            self._record(change, e.UndoAsked(actor=OURS))
            self._doorbell.ring("act", "execute", change.id)
        elif lapsed.back is not None and not self._ledger.entries(lapsed.undo):
            asked = e.Asked(
                intent=lapsed.back,
                actor=OURS,
                where=change.asked.where,
                said="",
                normalised="",
                fleet_sha256=self._fleet.sha256,
                undoes=change.id,
            )
            self._ledger.append(lapsed.undo, asked, expect_version=0)
            self._doorbell.ring("ask", "prepare", lapsed.undo)
        return True

    def _record(self, change: Change, event: e.Event) -> None:
        self._ledger.append(change.id, event, expect_version=change.version)
        self._doorbell.ring("narrate", "draw", change.id)
