"""The line: first come, first served among changes that share an instance; everybody else runs beside."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import events as e
from policies.change import Change, apply
from policies.facts import Incarnation
from policies.line import Eta, Place, Stand, lined_up, places, to_go, would_wait
from policies.plan import CanaryWatch, Estimate, Plan, RestartStep, Rolling
from policies.replan import rebased
from tests.policies import builders as b
from tests.policies.change_events import NOTE, standing

INSTANCES = [f"{service}@{host}" for service in ("prefill", "decode", "router") for host in ("gpu1", "gpu2")]
LINES = settings(max_examples=40, deadline=None)


@st.composite
def lines(draw: st.DrawFn) -> list[Stand]:
    """Changes that were begun, no two of them on one instance, as leases have it, and changes that wait."""
    stands: list[Stand] = []
    taken: set[str] = set()
    for number in range(draw(st.integers(0, 9))):
        wanted = tuple(draw(st.lists(st.sampled_from(INSTANCES), min_size=1, max_size=3, unique=True)))
        begun = draw(st.booleans()) and taken.isdisjoint(wanted)
        taken |= set(wanted) if begun else set()
        work = draw(st.none() | st.builds(Eta, st.integers(0, 600).map(float), st.integers(1, 9)))
        at = None if begun else float(draw(st.integers(0, 5)))
        stands.append(Stand(f"C-{number + 1}", wanted, at, held=begun and draw(st.booleans()), work=work))
    return stands


def share(one: Stand, other: Stand) -> bool:
    return bool(set(one.instances) & set(other.instances))


def comes_before(one: Stand, other: Stand) -> bool:
    """By the words of the rule: begun before waiting, then by approval, then by number."""
    if one.approved_at is None or other.approved_at is None:
        return one.approved_at is None and other.approved_at is not None
    return (one.approved_at, int(one.change[2:])) < (other.approved_at, int(other.change[2:]))


@LINES
@given(lines(), st.data())
def test_a_change_waits_for_exactly_those_before_it_on_its_instances(stands: list[Stand], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(stands))
    found = lined_up(shuffled)
    assert set(found) == {stand.change for stand in stands if stand.approved_at is not None}
    for stand in stands:
        if stand.approved_at is None:
            continue
        ahead = {other.change for other in stands if share(other, stand) and comes_before(other, stand)}
        place = found[stand.change]
        assert set(place.behind) == ahead
        assert (place.position == 1) == (not ahead)
        assert set(place.on) <= set(stand.instances)
        assert place.position >= len(ahead) + 1


@LINES
@given(lines())
def test_a_later_change_never_has_a_turn_before_an_earlier_one_that_it_overlaps(stands: list[Stand]) -> None:
    found = lined_up(stands)
    for one in stands:
        for other in stands:
            if one.change in found and other.change in found and share(one, other) and comes_before(one, other):
                assert found[one.change].position < found[other.change].position


@LINES
@given(lines())
def test_everybody_has_a_turn_when_those_ahead_end_one_after_the_other(stands: list[Stand]) -> None:
    left = [replace(stand, held=False) for stand in stands]
    turns = 0
    while left:
        line = lined_up(left)
        begun = [stand for stand in left if stand.approved_at is None]
        may = [stand for stand in left if stand.change in line and line[stand.change].position == 1]
        assert begun or may  # nobody waits in a circle
        for one in may:
            assert all(not share(one, other) for other in begun)
        ends = begun[0] if begun else may[0]
        left = [stand for stand in left if stand is not ends]
        turns += 1
    assert turns == len(stands)


@LINES
@given(lines())
def test_what_shares_no_instance_with_anybody_never_waits(stands: list[Stand]) -> None:
    alone = Stand("C-99", ("other@gpu9",), approved_at=99.0)
    assert lined_up([*stands, alone])["C-99"] == Place("C-99", 1)


@LINES
@given(lines())
def test_a_time_is_told_only_where_everything_ahead_is_known_and_is_never_less_than_what_is_ahead(
    stands: list[Stand],
) -> None:
    works = {stand.change: stand for stand in stands}
    for place in lined_up(stands).values():
        ahead = [works[name] for name in place.behind]
        if place.eta is None:
            continue
        assert all(stand.work is not None for stand in ahead)
        assert place.eta.left_s >= max(stand.work.left_s for stand in ahead if stand.work is not None)
        assert place.eta.n <= min(stand.work.n for stand in ahead if stand.work is not None)


def offered(order: str = "decode-only") -> Plan:
    return next(plan for plan in b.plans() if plan.order == order)


def timed(plan: Plan, seconds: float = 72.0, n: int = 7) -> Plan:
    medians = tuple((instance, seconds) for instance in plan.services)
    total = seconds * len(medians)
    return plan.model_copy(update={"estimate": Estimate(median_s=total, p90_s=total, n=n, medians=medians)})


def running(plan: Plan, name: str = "C-1", *, at: float = b.NOW) -> Change:
    change = standing("running")
    assert change.planned is not None
    planned = change.planned.model_copy(update={"plans": (plan,)})
    return replace(change, id=name, planned=planned, order=plan.order, started_at=at)


def approved(plan: Plan, name: str, at: float) -> Change:
    change = standing("approved")
    assert change.planned is not None
    planned = change.planned.model_copy(update={"plans": (plan,)})
    return replace(change, id=name, planned=planned, order=plan.order, approved_at=at)


def test_two_wait_behind_one_that_works_with_times_from_recorded_boots_and_the_watch() -> None:
    work, plan = running(timed(offered())), timed(offered(), n=3)
    line = places([approved(plan, "C-3", 9.0), work, approved(plan, "C-2", 5.0)], b.NOW, watch_s=60.0)
    assert list(line) == ["C-2", "C-3"]
    assert line["C-2"] == Place("C-2", 2, ("C-1",), plan.services, None, Eta(132.0, 7))
    assert line["C-3"] == Place("C-3", 3, ("C-1", "C-2"), plan.services, None, Eta(264.0, 3))


def test_a_boot_that_was_issued_takes_only_what_is_left_of_it() -> None:
    change = running(timed(offered()))
    steps = [i for i, step in enumerate(change.steps) if isinstance(step, RestartStep)]
    for index, step in enumerate(change.steps[: steps[0] + 1]):
        where = f"{step.service}@{step.host}"
        change = apply(change, e.StepStarted(part="do", index=index, step=step.kind, instance=where), b.NOW)
        done = e.StepDone(part="do", index=index, step=step.kind, instance=where, host_at=b.NOW)
        change = apply(change, done, b.NOW)
    assert to_go(change, b.NOW + 30.0, 0.0) == Eta(42.0, 7)
    assert to_go(change, b.NOW + 500.0, 10.0) == Eta(10.0, 7)


def test_the_watch_of_a_first_replica_counts_until_it_has_passed() -> None:
    canary = CanaryWatch(instance="decode@gpu1", why="the first", watch_s=45.0)
    rolling = Rolling(service="decode", replicas=3, max_unavailable=1, keep=2, canary=canary)
    change = running(timed(offered()).model_copy(update={"rolling": (rolling,)}))
    assert to_go(change, b.NOW, 10.0) == Eta(72.0 + 45.0 + 10.0, 7)
    assert to_go(replace(change, canary_passed=True), b.NOW, 10.0) == Eta(72.0 + 10.0, 7)


def test_behind_a_held_change_no_time_is_told_and_who_has_to_be_decided_on_is() -> None:
    held = replace(running(timed(offered())), state="held")
    plan = timed(offered())
    line = places([held, approved(plan, "C-2", 5.0), approved(plan, "C-3", 6.0)], b.NOW, 0.0)
    assert [(place.position, place.held, place.eta) for place in line.values()] == [(2, "C-1", None), (3, "C-1", None)]


def test_without_recorded_boots_no_time_is_told() -> None:
    plain = offered().model_copy(update={"estimate": None})
    line = places([running(plain), approved(timed(offered()), "C-2", 5.0)], b.NOW, 60.0)
    assert (line["C-2"].position, line["C-2"].eta) == (2, None)


@pytest.mark.parametrize("state", ["asked", "planned", "succeeded", "denied", "refused"])
def test_what_was_not_approved_or_has_ended_keeps_nobody_waiting(state: str) -> None:
    other = replace(standing(state), id="C-9")
    assert places([other, approved(offered(), "C-2", 5.0)], b.NOW, 0.0)["C-2"].position == 1


def test_a_plan_is_told_whom_it_would_wait_for_and_never_itself() -> None:
    plan = timed(offered())
    changes = [running(plan), approved(plan, "C-2", 5.0)]
    assert would_wait(plan, "C-3", changes, b.NOW, 0.0).behind == ("C-1", "C-2")
    assert would_wait(plan, "C-2", changes, b.NOW, 0.0).behind == ("C-1",)
    assert would_wait(plan, "C-1", changes[:1], b.NOW, 0.0).position == 1


def moved(plan: Plan, pid: int = 777) -> Plan:
    """The plan as it is made after every process in it was started anew."""
    life = Incarnation(main_pid=pid, started=pid, invocation_id=f"{pid:032x}")
    steps = tuple(s.model_copy(update={"before": life}) if isinstance(s, RestartStep) else s for s in plan.steps)
    undo = tuple(s.model_copy(update={"before": life}) if isinstance(s, RestartStep) else s for s in plan.undo)
    lives = tuple((instance, life) for instance, _ in plan.incarnations)
    return plan.model_copy(update={"steps": steps, "undo": undo, "incarnations": lives})


def test_a_plan_is_brought_up_to_date_only_where_our_own_restarts_account_for_every_process() -> None:
    plan = offered()
    now = moved(plan)
    life = now.incarnations[0][1]
    ours = {instance: ("C-1", life) for instance, _ in plan.incarnations}
    found = rebased(plan, now, ours)
    assert found is not None
    assert {finding.values["change"] for finding in found} == {"C-1"}
    assert rebased(plan, now, {}) is None
    foreign = {instance: ("C-1", b.life(5)) for instance in ours}
    assert rebased(plan, now, foreign) is None
    assert rebased(plan, plan, ours) is None
    other = now.model_copy(update={"files": (*now.files[:-1],)})
    assert rebased(plan, other, ours) is None
    assert rebased(plan, now.model_copy(update={"value": "511"}), ours) is None


def test_a_rebased_plan_takes_the_place_of_the_approved_one() -> None:
    change = standing("approved")
    assert change.plan is not None
    now = moved(change.plan)
    after = apply(change, e.Rebased(plan=now, findings=(NOTE,)), b.NOW)
    assert (after.state, after.plan, after.order) == ("approved", now, change.order)
