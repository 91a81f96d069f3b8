"""The promises that people rely on, over many ways that a change can go: approved first, one end, undo gives back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import events as e
from policies.change import ENDED, STATES, TABLE, Change, IllegalTransition, apply
from policies.plan import Plan, Step, WriteStep
from tests.policies import builders as b
from tests.policies.change_events import every
from tests.policies.test_plan_knob import STEPS, planned

EVENTS = every(b.plans())
KINDS = sorted(EVENTS)
BY_STATE = {state: sorted(kind for s, kind in TABLE if s == state) for state in STATES}
# what a host is told to do, and what says that it was done
WORK = frozenset({"started", "step_started", "step_done", "gate_passed", "gate_failed", "undo_started", "proved"})


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(KINDS), max_size=60))
def test_whatever_is_tried_in_whatever_order_nothing_is_done_unapproved_and_nothing_ends_twice(
    kinds: list[str],
) -> None:
    change, approved, ends = Change("C-1"), False, 0
    for kind in kinds:
        before = change
        try:
            change = apply(change, EVENTS[kind], b.NOW)
        except IllegalTransition:
            assert change is before
            continue
        if kind in {"planned", "replan"}:
            approved = False  # what was agreed to was another plan
        if isinstance(change.last, e.ApprovalGiven) and change.state == "approved":
            approved = True
        if kind in WORK:
            assert approved
        if change.state in ENDED and before.state not in ENDED:
            ends += 1
        if before.state in ENDED:
            assert kind == "click_refused"
            assert change.state == before.state
    assert ends <= 1


class Files:
    """A host's files as the helper writes them: only over what was expected, and twice is once."""

    def __init__(self, plan: Plan) -> None:
        self.texts = {step.path: step.before for step in plan.steps if isinstance(step, WriteStep)}

    def write(self, step: Step) -> None:
        if isinstance(step, WriteStep) and self.texts[step.path] in {step.before, step.text}:
            self.texts[step.path] = step.text


@pytest.mark.parametrize("case", STEPS, ids=b.ids(STEPS))
def test_undo_gives_every_file_back_from_wherever_the_change_was_cut(case: dict[str, Any]) -> None:
    (plan,) = planned(case)[2].plans
    for begun in range(len(plan.steps) + 1):
        for last_was_done in (True, False):
            files = Files(plan)
            original = dict(files.texts)
            done = begun if last_was_done else begun - 1
            for step in plan.steps[: max(0, done)]:
                files.write(step)
            touched = {(step.kind, step.service, step.host) for step in plan.steps[:begun]}
            for step in plan.undo:
                if (step.kind, step.service, step.host) in touched:
                    files.write(step)
            assert files.texts == original
