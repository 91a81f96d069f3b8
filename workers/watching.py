"""What one worker watches and proves, and what follows when that speaks against the change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from policies import events as e
from policies.change import Change
from policies.finding import Verdict
from policies.plan import CanaryWatch
from policies.undoing import undoes_itself
from workers.acts import Acts, instance
from workers.bake import begin, watch
from workers.canaries import Canaries
from workers.carrying import Carrying
from workers.gatekeeper import Gatekeeper
from workers.lease import Held as Lease
from workers.probing import Probing
from workers.proving import look, look_until_well, told_already

if TYPE_CHECKING:
    from workers.wiring import Wiring


class Watching(Carrying):
    """The first replica, the proof and the watch after the last gate."""

    acts: Acts

    def __init__(self, wiring: Wiring, change: Change, lease: Lease) -> None:
        super().__init__(wiring, change, lease)
        self.gates = Gatekeeper(wiring.fleet, wiring.hosts, lease.check)
        self.probing = Probing(wiring, self.gates.generations)

    def answer(self, verdict: Verdict, part: e.Part, *, changed: bool) -> None:
        """What follows from a gate or a canary that did not pass."""
        if undoes_itself(self.change, part, verdict.answer, verdict.findings, changed=changed):
            actor, stands = self.change.abort, self.standing()
            self.record(e.UndoStarted(actor=actor, findings=verdict.findings, standing=stands))
            return
        raise self.hold(*verdict.findings)

    def canary(self, watches: Sequence[CanaryWatch]) -> None:
        """Watch and judge the replica that went first; a successor goes on with the watch that was begun."""
        failed = self.change.canary_failed
        if failed is not None:
            self.answer(failed.verdict, "do", changed=True)
            return
        canaries = Canaries(self.w, watches)
        first = next(step for step in self.plan.steps if instance(step) == watches[0].instance)
        if self.change.canary is None:
            self.record(self.acts.ask(first, canaries.begin), unless_abort=True)
            return
        ended = canaries.watch(self.change.canary, self._goes_on)
        if ended is not None:
            self.record(ended, unless_abort=True)

    def prove(self) -> None:
        """One last look at everything the change touched, after all gates: the proof that is shown."""
        step, told = self.plan.steps[-1], self.ledger.entries(self.change.id)
        proved, bad = look_until_well(
            lambda: self.acts.ask(step, lambda: look(self.w.fleet, self.w.hosts, self.plan, told))
        )
        if not told_already(self.ledger.entries(self.change.id)):
            self.record(proved)
        if bad:
            raise self.hold(*bad)

    def bake(self) -> None:
        """Watch for as long as the fleet file says; a successor goes on with the watch that was begun."""
        plan, bake_s = self.plan, self.w.fleet.timing.bake_s
        if self.change.bake is None and bake_s > 0:
            until = self.w.clock() + bake_s
            self.record(self.acts.ask(plan.steps[-1], lambda: begin(self.w.hosts, plan, until)), unless_abort=True)
        if self.change.bake is None or self.change.baked:
            return
        outcome = watch(self.w.hosts, plan, self.change.bake, self.w.clock, self._goes_on)
        if isinstance(outcome, e.Baked):
            probed, outcome_now = self.probing.after_watch(self.change, outcome)
            for event in probed:
                self.record(event, unless_abort=True)
            outcome = outcome_now
        if isinstance(outcome, e.Baked):
            self.record(outcome, unless_abort=True)
        elif outcome:
            raise self.hold(*outcome)

    def _goes_on(self) -> bool:
        """Whether the lease holds and nobody asked to abort."""
        self.change = self.ledger.load(self.change.id)
        return self.change.abort is None
