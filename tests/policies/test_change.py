"""The life of a change: what the table allows happens, nothing else does, and the state is a fold over the events."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import events as e
from policies.change import ENDED, STATES, TABLE, WORKING, Change, IllegalTransition, State, apply, fold
from policies.events import GENESIS, Entry
from tests.policies import builders as b
from tests.policies.change_events import PATHS, asides, every, kinds, standing

PLANS = b.plans()
EVENTS = every(PLANS)
BY_STATE = {state: sorted(kind for s, kind in TABLE if s == state) for state in STATES}
AFTER = {"ratified", "ratify_reminded", "lapsed"}  # what is still said of an override when the work has ended
INCOMPLETE = EVENTS["approval_given"].model_copy(update={"complete": False})


@st.composite
def lives(draw: st.DrawFn) -> list[e.Event]:
    """A random sequence of events, each legal where it stands."""
    change = Change("C-1")
    events: list[e.Event] = []
    for _ in range(draw(st.integers(1, 30))):
        kind = draw(st.sampled_from(BY_STATE[change.state]))
        event = EVENTS[kind]
        if kind == "approval_given" and draw(st.booleans()):
            event = INCOMPLETE
        events.append(event)
        change = apply(change, event, b.NOW + len(events))
    return events


def histories(events: list[e.Event]) -> list[Change]:
    """The change before the first event and after each of them."""
    changes = [Change("C-1")]
    for number, event in enumerate(events, start=1):
        changes.append(apply(changes[-1], event, b.NOW + number))
    return changes


LEGAL = settings(max_examples=120, deadline=None)


@LEGAL
@given(lives())
def test_the_version_counts_the_events(events: list[e.Event]) -> None:
    assert [change.version for change in histories(events)] == list(range(len(events) + 1))


@LEGAL
@given(lives())
def test_no_step_is_started_before_an_approval_of_the_present_plan_was_complete(events: list[e.Event]) -> None:
    approved = False
    for event in events:
        if isinstance(event, e.ApprovalGiven) and event.complete:
            approved = True
        elif isinstance(event, (e.Asked, e.Replan, e.Planned)):
            approved = False
        elif isinstance(event, (e.Started, e.StepStarted, e.StepDone)):
            assert approved


@LEGAL
@given(lives())
def test_a_change_ends_once_and_then_only_refuses_clicks(events: list[e.Event]) -> None:
    changes = histories(events)
    first = next((n for n, change in enumerate(changes) if change.ended), None)
    if first is None:
        assert all(change.ended_at is None for change in changes)
        return
    assert {event.kind for event in events[first:]} <= {"click_refused", *AFTER}
    assert {(change.state, change.ended_at) for change in changes[first:]} == {(changes[first].state, b.NOW + first)}


@LEGAL
@given(lives())
def test_an_undo_is_not_turned_back_into_doing(events: list[e.Event]) -> None:
    undoing = False
    for change in histories(events):
        if undoing:
            assert change.undoing
            assert change.state not in {"running", "succeeded", "approved", "asked", "planned"}
            assert change.steps == PLANS[0].undo
        undoing = change.undoing


@LEGAL
@given(lives())
def test_the_state_is_the_one_that_the_table_names_or_the_undo_that_goes_on(events: list[e.Event]) -> None:
    for before, event, after in zip(histories(events), events, histories(events)[1:], strict=False):
        named = TABLE[before.state, event.kind]
        if isinstance(event, e.ApprovalGiven) and not event.complete:
            assert after.state == "planned"
        elif named == "running" and before.undoing:
            assert after.state == "undoing"
        else:
            assert after.state == named


@LEGAL
@given(lives())
def test_folding_entries_is_applying_events_one_by_one(events: list[e.Event]) -> None:
    entries = [
        Entry(seq=n, subject="C-1", version=n, at=b.NOW + n, event=event, prev=GENESIS)
        for n, event in enumerate(events, start=1)
    ]
    assert fold("C-1", entries) == histories(events)[-1]
    assert fold("C-1", entries[:1]) == histories(events)[1]


@LEGAL
@given(lives())
def test_a_refused_click_changes_nothing_but_the_version(events: list[e.Event]) -> None:
    change = histories(events)[-1]
    after = apply(change, EVENTS["click_refused"], b.NOW + 99)
    assert after.version == change.version + 1
    assert (after.state, after.last, after.progress, after.approvals, after.ended_at) == (
        change.state,
        change.last,
        change.progress,
        change.approvals,
        change.ended_at,
    )


@pytest.mark.parametrize("state", STATES)
def test_an_event_that_the_table_lacks_is_refused(state: State) -> None:
    for kind, event in {**EVENTS, **asides()}.items():
        change = Change("C-1", state=state)
        if (state, kind) in TABLE:
            assert apply(change, event, b.NOW).version == 1
        else:
            with pytest.raises(IllegalTransition, match=f"`{kind}` cannot follow in state `{state}`"):
                apply(change, event, b.NOW)


def test_every_state_is_reached_and_every_row_is_used_on_some_way_from_the_start() -> None:
    seen: set[tuple[State, bool]] = set()
    used: set[tuple[State, str]] = set()
    todo = [Change("C-1")]
    while todo:
        change = todo.pop()
        if (change.state, change.undoing) in seen:
            continue
        seen.add((change.state, change.undoing))
        for kind in BY_STATE[change.state]:
            used.add((change.state, kind))
            todo.append(apply(change, EVENTS[kind], b.NOW))
    assert {state for state, _ in seen} == set(STATES)
    assert used == set(TABLE)


def test_the_table_names_only_states_and_kinds_that_exist() -> None:
    of_changes = kinds() - set(asides())
    assert {state for state, _ in TABLE} | set(TABLE.values()) == set(STATES) == set(get_args(State))
    assert {kind for _, kind in TABLE} == of_changes == set(EVENTS)


def test_an_ended_change_stays_as_it_is_and_every_other_state_a_way_on() -> None:
    for state in STATES:
        if state in ENDED:
            beside = AFTER if state in {"succeeded", "failed"} else set()
            assert set(BY_STATE[state]) == {"click_refused", *beside}
        else:
            assert any(TABLE[state, kind] != state for kind in BY_STATE[state])
    assert set(STATES) - ENDED - WORKING == {"new", "asked", "planned", "held"}


@pytest.mark.parametrize(
    ("state", "kind", "then"),
    [
        ("approved", "refused", "refused"),
        ("approved", "replan", "asked"),
        ("running", "succeeded", "succeeded"),
        ("running", "gate_failed", "running"),
        ("running", "unknown", "unknown"),
        ("unknown", "step_done", "running"),
        ("held", "keep_chosen", "failed"),
        ("held", "undo_asked", "undoing"),
        ("undoing", "gate_failed", "undoing"),
        ("undoing", "rolled_back", "rolled_back"),
        ("undoing", "aborted", "aborted"),
    ],
)
def test_the_turns_that_people_are_told_of(state: State, kind: str, then: State) -> None:
    assert apply(Change("C-1", state=state), EVENTS[kind], b.NOW).state == then


@pytest.mark.parametrize("name", PATHS)
def test_each_named_way_leads_to_its_state(name: str) -> None:
    change = standing(name)
    assert change.state == name.partition(",")[0].split(" at ")[0].split(" while ")[0]
    assert change.undoing is ("undoing" in name or name == "rolled_back")


def test_an_approval_below_the_quorum_is_kept_and_starts_nothing() -> None:
    change = apply(standing("planned"), INCOMPLETE, b.NOW)
    assert (change.state, change.order, len(change.approvals)) == ("planned", None, 1)
    whole = apply(change, EVENTS["approval_given"], b.NOW)
    assert (whole.state, whole.order, len(whole.approvals)) == ("approved", "co-restart", 2)


def test_the_approved_order_decides_which_plan_is_carried_out() -> None:
    second = e.ApprovalGiven(actor=b.BEN, order="decode-only", digest=PLANS[1].digest, complete=True)
    planned = standing("planned")
    assert planned.plan == PLANS[0]
    assert apply(planned, second, b.NOW).plan == PLANS[1]
    assert Change("C-1").plan is None


def test_planning_again_forgets_approvals_and_progress_and_keeps_who_asked() -> None:
    change = apply(standing("running"), EVENTS["replan"], b.NOW + 60)
    assert (change.state, change.version, change.approvals, change.planned) == ("asked", 5, (), None)
    assert change.asked is not None
    assert change.asked.actor == b.ANA
    again = apply(change, b.planned(PLANS), b.NOW + 61)
    assert (again.state, again.order, again.approvals) == ("planned", None, ())


def test_progress_of_doing_and_undoing_is_kept_apart() -> None:
    change = standing("running")
    old = b.life(7)
    for event in (
        e.StepStarted(part="do", index=0, step="restart", instance="prefill@gpu1"),
        e.StepDone(part="do", index=0, step="restart", instance="prefill@gpu1", host_at=5.0, before=old),
        EVENTS["gate_passed"].model_copy(update={"index": 0}),
        e.StepStarted(part="do", index=1, step="write", instance="decode@gpu1"),
    ):
        change = apply(change, event, b.NOW)
    assert (change.do.started, change.do.done, change.do.gates) == (1, (0,), ((0, "health"),))
    assert (change.do.issued_at(0), change.do.before(0)) == (5.0, old)
    assert (change.do.issued_at(1), change.do.before(1)) == (None, None)
    undoing = apply(change, e.UndoStarted(actor=None, findings=()), b.NOW)
    undoing = apply(undoing, e.StepStarted(part="undo", index=0, step="restart", instance="prefill@gpu1"), b.NOW)
    assert undoing.do == change.do
    assert undoing.progress == undoing.undo
    assert (undoing.undo.started, undoing.undo.done) == (0, ())


def test_each_step_keeps_when_it_was_done_and_each_restart_what_it_replaced() -> None:
    change = standing("running")
    for index, (host, pid) in enumerate((("gpu1", 7), ("gpu2", 8))):
        done = {"part": "do", "index": index, "step": "restart", "instance": f"decode@{host}", "host_at": 5.0 + index}
        change = apply(change, e.StepDone.model_validate({**done, "before": b.life(pid)}), b.NOW)
    write = e.StepDone(part="do", index=2, step="write", instance="decode@gpu1", host_at=9.0)
    after = apply(change, write, b.NOW).do
    assert after.done == (0, 1, 2)
    assert [after.before(i) for i in range(3)] == [b.life(7), b.life(8), None]
    assert [after.issued_at(i) for i in range(4)] == [5.0, 6.0, 9.0, None]


def test_looking_again_or_undoing_forgets_the_failed_gate() -> None:
    held = standing("held at a failed gate")
    assert held.failed_gate == EVENTS["gate_failed"]
    assert apply(held, EVENTS["retry_asked"], b.NOW).failed_gate is None
    assert apply(held, EVENTS["undo_asked"], b.NOW).failed_gate is None


def test_a_takeover_keeps_the_first_start_and_takes_the_new_tokens() -> None:
    running = standing("running")
    over = apply(running, e.Started(worker="w2", tokens={"decode@gpu1": 2}, resumed=True), b.NOW + 50)
    assert (over.started_at, over.tokens) == (running.started_at, {"decode@gpu1": 2})


def test_a_change_that_was_held_or_lost_while_undoing_goes_on_undoing() -> None:
    assert apply(standing("held while undoing"), EVENTS["retry_asked"], b.NOW).state == "undoing"
    assert apply(standing("unknown while undoing"), EVENTS["step_done"], b.NOW).state == "undoing"
    assert apply(standing("held"), EVENTS["retry_asked"], b.NOW).state == "running"
    assert apply(standing("unknown"), EVENTS["step_done"], b.NOW).state == "running"
