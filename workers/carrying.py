"""One worker's turn at one change, as the ledger has it: what it records, on top of what others recorded meanwhile."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from policies import events as e
from policies.change import Change, apply
from policies.errors import LedgerConflict, StoreUnavailable
from policies.finding import Finding
from policies.plan import Plan
from policies.standing import Standing
from workers.lease import Held as Lease
from workers.patience import Patient
from workers.standing import standing

if TYPE_CHECKING:
    from workers.wiring import Wiring


class Stop(Exception):  # not an error: the run is over, and what ended it is recorded
    """Raised inside a run after its last event was recorded."""


class Carrying:
    """The change, read again behind each event that is recorded."""

    def __init__(self, wiring: Wiring, change: Change, lease: Lease) -> None:
        self.w = wiring
        self.change = change
        self.lease = lease
        self.ledger = Patient(wiring.ledger, lease)

    @property
    def plan(self) -> Plan:
        """The approved plan; a run is only ever made for a change that has one."""
        plan = self.change.plan
        if plan is None:
            raise RuntimeError(f"{self.change.id} is being executed without a plan")
        return plan

    def record(self, event: e.Event, *, unless_abort: bool = False) -> bool:
        """Append, while the lease holds; when others appended meanwhile (a click), on top of theirs.

        unless_abort: not when an abort came in the last moment; False then, and nothing was recorded.
        Raises: LeaseLost, IllegalTransition (theirs ended or held the change: nothing more may happen).
        """
        while True:
            apply(self.change, event, self.w.clock())
            try:
                self.ledger.append(self.change, event)
            except LedgerConflict:
                self.change = self.ledger.load(self.change.id)
                if unless_abort and self.change.abort is not None and not self.change.undoing:
                    return False
                continue
            self.change = self.ledger.load(self.change.id)
            with suppress(StoreUnavailable):  # the narrator looks for what was not rung for
                self.w.doorbell.ring("narrate", "draw", self.change.id)
            return True

    def end(self, event: e.Event) -> Stop:
        """Record the event that ends this run."""
        self.record(event)
        return Stop()

    def hold(self, *findings: Finding) -> Stop:
        """Stop here and wait for a person."""
        return self.end(e.Held(findings=findings, standing=self.standing()))

    def standing(self) -> Standing | None:
        """What each replica has, read now; None where there are none, or nothing was begun."""
        do = self.change.do
        return standing(self.w, self.plan) if do.done or do.started is not None else None

    def _unknown(self, finding: Finding) -> None:
        if self.change.state != "unknown":
            self.record(e.Unknown(findings=(finding,)))
