"""The job `execute`: carry an approved change through, step by step, each recorded before it is done.

Everything that was recorded is where a successor goes on: this module keeps no state of its own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import structlog

from policies import events as e
from policies.canaries import watches_due
from policies.change import Change, IllegalTransition
from policies.errors import LeaseLost, StoreUnavailable
from policies.finding import Finding
from policies.plan import AdmitStep, DrainStep, RestartStep, Step
from policies.stages import drained, next_step, stage_of, unsettled
from policies.standing import differing
from policies.undoing import is_changed, no_way_back, undone
from workers.acts import Acts, Undecided, instance
from workers.aftermath import Aftermath
from workers.aims import agreed_of, aim_of, version_of
from workers.carrying import Stop
from workers.drains import Drains
from workers.floor import Floor
from workers.issued import told
from workers.lease import Held as Lease
from workers.line import waits
from workers.recheck import recheck
from workers.success import succeeded
from workers.watching import Watching

if TYPE_CHECKING:
    from workers.wiring import Wiring

LOG = structlog.get_logger(__name__)


def execute(wiring: Wiring, change_id: str) -> None:
    """Carry out what is approved; does nothing when there is nothing to carry out or somebody else does it."""
    change = wiring.ledger.load(change_id)
    plan = change.plan
    if change.state not in {"approved", "running", "undoing", "unknown"} or plan is None:
        return
    if change.state == "approved" and waits(wiring, change):
        return  # rung again when its turn has come
    wiring.hosts.warm(step.host for step in plan.steps)
    try:
        lease = wiring.leases.take(plan.leased, owner=wiring.name, lease_s=wiring.fleet.timing.lease_s)
    except LeaseLost as held:
        LOG.info("an instance is leased to another worker", change=change_id, why=held.message)
        return  # the sweep rings again when the lease is free
    try:
        Run(wiring, wiring.ledger.load(change_id), lease).go()
    except Stop:
        pass
    except (LeaseLost, IllegalTransition) as lost:
        LOG.warning("another worker goes on, stopped", change=change_id, why=str(lost))
    except StoreUnavailable as away:
        LOG.warning("what is done cannot be recorded, stopped", change=change_id, why=away.message)
    finally:
        lease.release()


class Run(Watching):
    """One worker's turn at one change."""

    def __init__(self, wiring: Wiring, change: Change, lease: Lease) -> None:
        super().__init__(wiring, change, lease)
        self.floor = Floor(wiring.fleet, wiring.hosts, lease.check)
        turns = [entry.event for entry in wiring.ledger.entries(change.id) if isinstance(entry.event, e.Started)]
        first = turns[0].tokens if turns else lease.tokens
        drains = Drains.of(wiring, lease, change.id, first, partial(self.ledger.entries, change.id))
        self.acts = Acts(wiring.hosts, lease, change.id, first, self._unknown, drains)
        self.issued: set[tuple[e.Part, int]] = set()  # steps done in this turn
        self.well = False  # proven and watched: only what is left over remains to be taken away

    def go(self) -> None:
        """From wherever the change is to its end, or to where a person must decide."""
        if self.change.state not in {"approved", "running", "undoing", "unknown"}:
            return
        resumed = self.change.state != "approved"
        if not resumed:
            self._abort_if_asked()
            self._recheck()
        elif isinstance(self.change.last, (e.RetryAsked, e.UndoAsked)):
            resumed = False  # the turn before ended in a hold, and a person gave this one
        self.record(e.Started(worker=self.w.name, tokens=dict(self.lease.tokens), resumed=resumed))
        try:
            self._fence()
            while not self.change.ended:
                self._abort_if_asked()
                index = next_step(self.change, well=self.well)
                if watches := watches_due(self.change, index):
                    self.canary(watches)
                elif index is None:
                    self._finish()
                else:
                    self._step(index)
        except Undecided as undecided:
            raise self.hold(*undecided.findings) from undecided

    def _recheck(self) -> None:
        event = recheck(self.w, self.change)
        if event is None:
            return
        if not self.record(event, unless_abort=True):
            self._abort_if_asked()
        if isinstance(event, e.Rebased):
            return
        if isinstance(event, e.Replan):
            self.w.doorbell.ring("ask", "prepare", self.change.id)
        raise Stop

    def _fence(self) -> None:
        """Raise the token on every host first: from here on an older worker's calls are refused there."""
        for step in self.plan.steps:
            if isinstance(step, RestartStep):
                self.acts.incarnation(step)
            elif isinstance(step, (DrainStep, AdmitStep)):
                self.acts.fence_routers(step)

    def _abort_if_asked(self) -> None:
        self.change = self.ledger.load(self.change.id)
        if self.change.abort is None or self.change.undoing:
            return
        if not self.change.do.done and self.change.do.started is None:
            values: dict[str, str | int | float | None] = {"actor": self.change.abort.id}
            raise self.end(e.Aborted(findings=(Finding(code="aborted.before-start", effect="note", values=values),)))
        if unsettled(self.change) is None:
            if (stays := no_way_back(self.change)) is not None:
                raise self.hold(stays)
            self.record(e.UndoStarted(actor=self.change.abort, findings=(), standing=self.standing()))

    def _step(self, index: int) -> None:
        """Do the step or, where it is done, ask its gates."""
        step = self.change.steps[index]
        part: e.Part = "undo" if self.change.undoing else "do"
        if index not in self.change.progress.done:
            self._act(step, part, index)
        elif isinstance(step, RestartStep):
            self._gates(step, part, index)
            self.w.recorder.after_step(self.plan.services)
        elif isinstance(step, AdmitStep):
            self._admitted(step, part, index)
        else:
            raise TypeError(f"a {step.kind} step has no gates")

    def _act(self, step: Step, part: e.Part, index: int) -> None:
        again = self.change.progress.started == index
        if not again:
            self.w.recorder.before_step(self.plan.services)
        if low := self.floor.below(self.change, self.plan, stage_of(self.change, index)):
            raise self.hold(*low)
        if part == "do" and self.change.progress.started is None:
            self.acts.must_be_free(self.w.fleet, self.plan, step)
        if not again and isinstance(step, RestartStep):
            for at, drain in drained(self.change, index):
                self.acts.still_drained(drain, part, at)
        if not again:
            started = e.StepStarted(part=part, index=index, step=step.kind, instance=instance(step))
            if not self.record(started, unless_abort=True):
                return
        self.record(self.acts.do(step, part, index, again=again))
        self.issued.add((part, index))

    def _gates(self, step: RestartStep, part: e.Part, index: int) -> None:
        failed = self.change.failed_gate
        if failed is not None and (failed.part, failed.index) == (part, index):
            # the worker that recorded it ended before it was answered
            self.answer(failed.verdict, part, changed=step.changed)
            return
        issued = told(self.ledger.entries(self.change.id), self.change, step, part, index)
        issued = replace(issued, taken_over=(part, index) not in self.issued)
        touched = self._touched(part, step)
        aim = aim_of(self.w.fleet, self.plan, instance(step), undoing=self.change.undoing)
        wanted = version_of(self.plan, instance(step), undoing=self.change.undoing)
        agreed = agreed_of(self.plan, instance(step), undoing=self.change.undoing)
        for answer in self.gates.ask(step, issued, aim, touched, wanted, agreed):
            common = {"part": part, "index": index, "instance": instance(step), "gate": answer.gate}
            if answer.verdict.answer == "pass":
                probe = self.probing.read(answer.verdict) if part == "do" else None
                self.record(answer.passed(common, probe))
                continue
            verdict = Aftermath(self.w.fleet, self.w.hosts).told(self.plan, step, issued, aim, answer)
            self.record(e.GateFailed.model_validate({**common, "verdict": verdict}))
            self.answer(verdict, part, changed=step.changed)

    def _admitted(self, step: AdmitStep, part: e.Part, index: int) -> None:
        """Ask its routers; in a turn of its own, have them register it first where they do not list it (any more)."""
        failed = self.change.failed_gate
        if failed is not None and (failed.part, failed.index) == (part, index):
            self.answer(failed.verdict, part, changed=self._own(step, failed.gate))
            return
        if (part, index) not in self.issued:
            self.acts.do(step, part, index, again=True)
            self.issued.add((part, index))
        touched = self._touched(part, step)
        passed = {gate for known, gate in self.change.progress.gates if known == index}
        for answer in self.gates.ask_admit(step, self.ledger.entries(self.change.id), touched):
            common = {"part": part, "index": index, "instance": instance(step), "gate": answer.gate}
            if answer.verdict.answer == "pass" and answer.gate in passed:
                continue  # the worker before recorded it, and ended between it and the next one
            if answer.verdict.answer == "pass":
                probe = self.probing.read(answer.verdict) if part == "do" else None
                self.record(answer.passed(common, probe))
                continue
            self.record(e.GateFailed.model_validate({**common, "verdict": answer.verdict}))
            self.answer(answer.verdict, part, changed=self._own(step, answer.gate))

    def _own(self, step: AdmitStep, gate: str) -> bool:
        """Whether a gate behind an admission speaks against the change: what a router says of it does not by itself."""
        return gate == "canary" and is_changed(self.plan, step)

    def _touched(self, part: e.Part, step: Step) -> tuple[str, ...]:
        """Instances that the change came to until this step."""
        return tuple(instance(s) for s in self.plan.steps if part == "undo" or s.wave <= step.wave)

    def _finish(self) -> None:
        change, plan = self.change, self.plan
        if change.undoing:
            note, stands = undone(plan), self.standing()
            ended = e.Aborted if change.abort else e.RolledBack
            self.record(ended(findings=(note,), standing=stands))
            return
        if not self.well and change.bake is None:
            self.prove()
        if not self.well:
            self.bake()
        if self.change.abort is not None:
            return  # heeded by the loop: what was done is undone
        self.well = True
        self.probing.state_slow(self.change)
        if next_step(self.change, well=True) is None:
            stands = self.standing()
            if stands is not None and (wrong := differing(plan, stands)):
                values: dict[str, str | int | float | None] = {"instances": ", ".join(one.instance for one in wrong)}
                raise self.hold(Finding(code="hold.mixed", effect="refuse", values=values))
            self.record(succeeded(self.w, change, plan, stands), unless_abort=True)
