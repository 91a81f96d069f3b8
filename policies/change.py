"""The life of a change: one table of transitions, and the state as a fold over its events."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from policies import events as e
from policies.intents import Actor
from policies.plan import Plan, Step
from policies.progress import Progress
from policies.standing import Standing

State = Literal[
    "new",
    "asked",
    "planned",
    "refused",
    "nothing_to_do",
    "approved",
    "denied",
    "expired",
    "running",
    "held",
    "undoing",
    "unknown",
    "succeeded",
    "rolled_back",
    "failed",
    "aborted",
]
STATES: tuple[State, ...] = get_args(State)
ENDED: frozenset[State] = frozenset(
    {"refused", "nothing_to_do", "denied", "expired", "succeeded", "rolled_back", "failed", "aborted"}
)
WORKING: frozenset[State] = frozenset({"approved", "running", "undoing", "unknown"})
# States in which what an emergency did without can be ratified
OVERRIDDEN: tuple[State, ...] = ("approved", "running", "held", "undoing", "unknown", "succeeded", "failed")

# (state, event kind) -> next state. What is not here cannot happen. `approval_given` stays "planned" until the
# quorum is reached; everything that keeps the state is listed too, so that the table is the whole truth.
TABLE: dict[tuple[State, str], State] = {
    ("new", "asked"): "asked",
    ("asked", "planned"): "planned",
    ("asked", "refused"): "refused",
    ("asked", "nothing_to_do"): "nothing_to_do",
    ("planned", "approval_given"): "approved",
    ("planned", "reminded"): "planned",
    ("planned", "denied"): "denied",
    ("planned", "expired"): "expired",
    ("planned", "aborted"): "aborted",
    ("approved", "queued"): "approved",
    ("approved", "rebased"): "approved",
    ("approved", "started"): "running",
    ("approved", "replan"): "asked",
    ("approved", "refused"): "refused",
    ("approved", "held"): "held",
    ("approved", "abort_asked"): "approved",
    ("approved", "aborted"): "aborted",
    ("running", "started"): "running",
    ("running", "replan"): "asked",
    ("running", "step_started"): "running",
    ("running", "step_done"): "running",
    ("running", "gate_passed"): "running",
    ("running", "gate_failed"): "running",
    ("running", "canary_started"): "running",
    ("running", "canary_passed"): "running",
    ("running", "canary_failed"): "running",
    ("running", "proved"): "running",
    ("running", "bake_started"): "running",
    ("running", "probed"): "running",
    ("running", "baked"): "running",
    ("running", "abort_asked"): "running",
    ("running", "undo_started"): "undoing",
    ("running", "held"): "held",
    ("running", "unknown"): "unknown",
    ("running", "succeeded"): "succeeded",
    ("running", "failed"): "failed",
    ("running", "aborted"): "aborted",
    ("unknown", "started"): "unknown",
    ("unknown", "step_started"): "running",
    ("unknown", "step_done"): "running",
    ("unknown", "held"): "held",
    ("unknown", "abort_asked"): "unknown",
    ("held", "retry_asked"): "running",
    ("held", "undo_asked"): "undoing",
    ("held", "keep_chosen"): "failed",
    ("held", "started"): "held",
    ("undoing", "started"): "undoing",
    ("undoing", "undo_started"): "undoing",
    ("undoing", "step_started"): "undoing",
    ("undoing", "step_done"): "undoing",
    ("undoing", "gate_passed"): "undoing",
    ("undoing", "gate_failed"): "undoing",
    ("undoing", "held"): "held",
    ("undoing", "unknown"): "unknown",
    ("undoing", "rolled_back"): "rolled_back",
    ("undoing", "aborted"): "aborted",
    ("undoing", "failed"): "failed",
    **{(state, "click_refused"): state for state in STATES if state != "new"},
    **{(state, "ratified"): state for state in OVERRIDDEN},
    **{(state, "ratify_reminded"): state for state in OVERRIDDEN},
    **{(state, "lapsed"): state for state in ("held", "succeeded", "failed")},
}


class IllegalTransition(ValueError):
    """An event that the table does not allow in this state: a bug or a lost race, never recorded."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change as its events tell it. `version` is the number of its events, for compare-and-set."""

    id: str
    version: int = 0
    state: State = "new"
    asked: e.Asked | None = None
    asked_at: float = 0.0
    planned: e.Planned | None = None
    planned_at: float = 0.0
    reminded: bool = False  # of the present plan
    replans: int = 0  # how often what had been approved was planned again
    approvals: tuple[e.ApprovalGiven, ...] = ()
    order: str | None = None
    approved_at: float = 0.0
    queued: e.Queued | None = None  # as it was told last
    started_at: float = 0.0
    tokens: dict[str, int] = field(default_factory=dict)
    do: Progress = field(default_factory=Progress)
    undo: Progress = field(default_factory=Progress)
    undoing: bool = False  # also while held or unknown during an undo
    undo_reason: e.UndoStarted | None = None
    abort: Actor | None = None
    override: e.Override | None = None  # what was done without
    override_at: float = 0.0
    ratified: e.Ratified | None = None
    ratify_reminded: bool = False
    lapsed: e.Lapsed | None = None
    failed_gate: e.GateFailed | None = None
    canary: e.CanaryStarted | None = None  # the watch of the first wave
    canary_passed: bool = False
    canary_failed: e.CanaryFailed | None = None
    proved: e.Proved | None = None
    bake: e.BakeStarted | None = None
    baked: bool = False
    standing: Standing | None = None  # what each replica had when it last stopped or ended
    last: e.Event | None = None
    ended_at: float | None = None

    @property
    def plan(self) -> Plan | None:
        """The approved plan; before approval the default one."""
        if self.planned is None:
            return None
        for plan in self.planned.plans:
            if plan.order == self.order:
                return plan
        return self.planned.plans[0] if self.planned.plans else None

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of the part that is being worked on."""
        plan = self.plan
        if plan is None:
            return ()
        return plan.undo if self.undoing else plan.steps

    @property
    def progress(self) -> Progress:
        """The progress of the part that is being worked on."""
        return self.undo if self.undoing else self.do

    @property
    def looks_again(self) -> bool:
        """A gate or the first replica did not pass, and can be looked at again."""
        return self.failed_gate is not None or self.canary_failed is not None

    @property
    def ended(self) -> bool:
        """No event but a refused click can follow."""
        return self.state in ENDED


def apply(change: Change, event: e.Event, at: float) -> Change:
    """The change after one more event.

    Raises: IllegalTransition when the table has no such row.
    """
    state = TABLE.get((change.state, event.kind))
    if state is None:
        message = f"{change.id}: `{event.kind}` cannot follow in state `{change.state}`"
        raise IllegalTransition(message)
    change = replace(change, version=change.version + 1)
    if isinstance(event, e.ClickRefused):
        return change
    if isinstance(event, e.Ratified):  # beside the work, and after it: nothing of where it stands is moved
        return replace(change, ratified=event)
    if isinstance(event, e.RatifyReminded):
        return replace(change, ratify_reminded=True)
    if isinstance(event, e.Lapsed):
        return replace(change, lapsed=event)
    if isinstance(event, e.ApprovalGiven):
        given = (*change.approvals, event)
        if not event.complete:
            return replace(change, approvals=given, last=event)
        change = replace(change, override=event.override, override_at=at if event.override is not None else 0.0)
        return replace(change, state=state, approvals=given, order=event.order, approved_at=at, last=event)
    if state == "running" and change.undoing:
        state = "undoing"  # an undo that was held or unknown goes on undoing
    ended = at if state in ENDED else None
    return _details(replace(change, state=state, last=event, ended_at=ended), event, at)


def _details(change: Change, event: e.Event, at: float) -> Change:
    if isinstance(event, e.Asked):
        return replace(change, asked=event, asked_at=at)
    if isinstance(event, e.Planned):
        return replace(change, planned=event, planned_at=at, reminded=False, approvals=(), order=None)
    if isinstance(event, e.Reminded):
        return replace(change, reminded=True)
    if isinstance(event, e.Replan):
        again = Change(change.id, version=change.version, state="asked", asked=change.asked, asked_at=at, last=event)
        return replace(again, replans=change.replans + 1)
    if isinstance(event, e.Queued):
        return replace(change, queued=event)
    if isinstance(event, e.Rebased) and change.planned is not None:
        plans = tuple(event.plan if plan.order == change.order else plan for plan in change.planned.plans)
        return replace(change, planned=change.planned.model_copy(update={"plans": plans}))
    if isinstance(event, e.Started):
        first = change.started_at or at
        return replace(change, started_at=first, tokens=dict(event.tokens))
    if isinstance(event, e.AbortAsked):
        return replace(change, abort=event.actor)
    if isinstance(event, (e.UndoStarted, e.UndoAsked)):
        started = event if isinstance(event, e.UndoStarted) else None
        change = replace(change, undo_reason=started or change.undo_reason, failed_gate=None, canary_failed=None)
        return replace(change, undoing=True, standing=None if started is None else started.standing)
    if isinstance(event, e.RetryAsked):
        again = replace(change, failed_gate=None, canary_failed=None, standing=None)
        return again if change.canary_passed else replace(again, canary=None)  # watched anew
    if isinstance(event, e.GateFailed):
        return replace(change, failed_gate=event)
    if isinstance(event, e.CanaryStarted):
        return replace(change, canary=event)
    if isinstance(event, e.CanaryPassed):
        return replace(change, canary_passed=True)
    if isinstance(event, e.CanaryFailed):
        return replace(change, canary_failed=event)
    if isinstance(event, e.Proved):
        return replace(change, proved=event)
    if isinstance(event, e.BakeStarted):
        return replace(change, bake=event)
    if isinstance(event, e.Baked):
        return replace(change, baked=True)
    if isinstance(event, (e.Held, e.KeepChosen, e.Succeeded, e.RolledBack, e.Aborted, e.Failed)):
        return replace(change, standing=event.standing)
    if isinstance(event, (e.StepStarted, e.StepDone, e.GatePassed)):
        return _progress(change, event)
    return change


def _progress(change: Change, event: e.StepStarted | e.StepDone | e.GatePassed) -> Change:
    now = change.undo if event.part == "undo" else change.do
    if isinstance(event, e.StepStarted):
        now = replace(now, started=event.index)
    elif isinstance(event, e.StepDone):
        issued = (*now.issued, (event.index, event.host_at))
        replaced = now.replaced
        if event.step == "restart" and event.before is not None:
            replaced = (*replaced, (event.index, event.before))
        now = replace(now, started=None, done=(*now.done, event.index), issued=issued, replaced=replaced)
    else:
        now = replace(now, gates=(*now.gates, (event.index, event.gate)))
    return replace(change, undo=now) if event.part == "undo" else replace(change, do=now)


def fold(change_id: str, entries: Iterable[e.Entry]) -> Change:
    """The change that these entries tell, in order."""
    change = Change(change_id)
    for entry in entries:
        change = apply(change, entry.event, entry.at)
    return change
