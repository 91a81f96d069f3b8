"""Stages over random wave plans and random answers: what is begun when, what is asked when, what an undo goes over."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import events as e
from policies.canaries import watches_due, watches_of
from policies.change import Change, apply
from policies.finding import Verdict
from policies.plan import CanaryWatch, Plan, Step
from policies.stages import at_work, is_undone, next_step, open_gates, stage_of, stages_of, unsettled
from tests.policies import builders as b
from tests.policies.waves import plan

HOSTS = ("gpu1", "gpu2", "gpu3", "gpu4")


def opening(of: Plan) -> tuple[e.Event, ...]:
    """Asked, planned, approved and begun by a worker."""
    return (
        b.asked(),
        b.planned((of,)),
        e.ApprovalGiven(actor=b.BEN, order=of.order, digest=of.digest, complete=True),
        e.Started(worker="w1", tokens={}),
    )


def approved(of: Plan) -> Change:
    """A change of this plan that a worker has begun."""
    change = Change("C-1")
    for event in opening(of):
        change = apply(change, event, b.NOW)
    return change


def name(step: Step) -> str:
    return f"{step.service}@{step.host}"


def short(step: Step) -> str:
    return f"{step.kind} {name(step)}"


@dataclass
class Run:
    """The loop of a worker, with answers that are drawn; keeps what it did, in order."""

    change: Change
    draw: st.DrawFn | None = None
    acts: list[tuple[str, int]] = field(default_factory=list)  # (part, index)
    log: list[str] = field(default_factory=list)
    events: list[e.Event] = field(default_factory=list)

    def tell(self, event: e.Event) -> None:
        self.change = apply(self.change, event, b.NOW)
        self.events.append(event)

    def turn(self, answer: str = "pass", *, undoes: bool = True) -> bool:
        """One turn of the loop; False when nothing is left to do."""
        part: e.Part = "undo" if self.change.undoing else "do"
        if self.change.abort is not None and not self.change.undoing and unsettled(self.change) is None:
            self.tell(e.UndoStarted(actor=b.ANA, findings=()))
            return True
        index = next_step(self.change, well=False)
        if watches := watches_due(self.change, index):
            self._canary(watches, answer)
            return True
        if index is None:
            return False
        step = self.change.steps[index]
        if index not in self.change.progress.done:
            self.acts.append((part, index))
            self.log.append(short(step))
            told = {"part": part, "index": index, "step": step.kind, "instance": name(step)}
            if self.change.progress.started != index:
                self.tell(e.StepStarted.model_validate(told))
            self.tell(e.StepDone.model_validate({**told, "host_at": b.NOW, "before": b.life(7)}))
            return True
        gate = open_gates(self.change, index)[0]
        said = {"part": part, "index": index, "instance": name(step), "gate": gate}
        if answer == "pass":
            self.log.append(f"{gate} {name(step)}")
            self.tell(e.GatePassed.model_validate({**said, "verdict": Verdict(answer="pass")}))
            return True
        self.tell(e.GateFailed.model_validate({**said, "verdict": Verdict(answer="fail")}))
        if part == "do" and undoes:
            self.tell(e.UndoStarted(actor=None, findings=()))
        else:
            self.tell(e.Held(findings=()))
            self.tell(e.RetryAsked(actor=b.ANA) if part == "undo" else e.UndoAsked(actor=b.ANA))
        return True

    def _canary(self, watches: tuple[CanaryWatch, ...], answer: str) -> None:
        instances = tuple(watch.instance for watch in watches)
        if self.change.canary is None:
            self.tell(e.CanaryStarted(until=b.NOW, readings={}))
        elif answer == "pass":
            self.tell(e.CanaryPassed(instances=instances, findings=()))
        else:
            self.tell(e.CanaryFailed(instances=instances, verdict=Verdict(answer="fail")))
            self.tell(e.UndoStarted(actor=None, findings=()))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Waves of disjoint instances of up to three services, some drained."""
    waves: list[dict[str, tuple[str, ...]]] = [{} for _ in range(draw(st.integers(1, 3)))]
    for service in draw(st.sampled_from([("decode",), ("prefill", "decode"), ("prefill", "decode", "router")])):
        hosts = draw(st.permutations(HOSTS))[: draw(st.integers(1, len(HOSTS)))]
        for host in hosts:
            wave = waves[draw(st.integers(0, len(waves) - 1))]
            wave[service] = (*wave.get(service, ()), host)
    drained = draw(st.sampled_from([(), ("decode",), ("prefill", "decode")]))
    kept = [wave for wave in waves if wave]
    canary = None
    if draw(st.booleans()) and kept[0].get("decode"):
        canary = CanaryWatch(instance=f"decode@{kept[0]['decode'][0]}", why="", watch_s=1.0)
    return plan(kept, drained=drained, canary=canary)


def played(draw: st.DrawFn, of: Plan) -> list[Change]:
    """The change after each turn, with random answers, an abort, and a worker that ends at random."""
    run = Run(approved(of))
    changes = [run.change]
    for _ in range(400):
        if not run.change.undoing and run.change.abort is None and draw(st.integers(0, 15)) == 0:
            run.tell(e.AbortAsked(actor=b.ANA))
        index = next_step(run.change, well=False)
        if index is not None and index not in run.change.progress.done and draw(st.integers(0, 7)) == 0:
            part = "undo" if run.change.undoing else "do"
            step = run.change.steps[index]
            told = {"part": part, "index": index, "step": step.kind, "instance": name(step)}
            if run.change.progress.started is None:
                run.tell(e.StepStarted.model_validate(told))
            run.tell(e.Started(worker="w2", tokens={}, resumed=True))  # the worker ended between the two
            changes.append(run.change)
        answer = "fail" if draw(st.integers(0, 9)) == 0 else "pass"
        if not run.turn(answer, undoes=draw(st.booleans())):
            changes.append(run.change)
            return changes
        changes.append(run.change)
    raise AssertionError("the change does not come to an end")


@st.composite
def histories(draw: st.DrawFn) -> list[Change]:
    return played(draw, draw(plans()))


LIVES = settings(max_examples=60, deadline=None)


@LIVES
@given(histories())
def test_no_stage_begins_before_every_gate_of_the_one_before_has_passed(changes: list[Change]) -> None:
    for before, after in pairwise(changes):
        if before.undoing is not after.undoing or before.plan is None:
            continue
        fresh = {*after.progress.done, after.progress.started} - {*before.progress.done, before.progress.started, None}
        for index in fresh:
            assert index is not None
            stages = stages_of(before.plan, before.steps)
            mine = stage_of(before, index)
            for stage in stages[: stages.index(mine)]:
                for other in stage.steps:
                    if before.undoing and not is_undone(before, before.steps[other]):
                        continue
                    assert other in before.progress.done
                    assert open_gates(before, other) == ()


@LIVES
@given(histories())
def test_no_second_wave_is_begun_before_the_first_replica_was_judged_well(changes: list[Change]) -> None:
    for change in changes:
        if change.plan is None or not watches_of(change.plan):
            continue
        later = [i for i in {*change.do.done, change.do.started} if i is not None and change.plan.steps[i].wave > 1]
        assert not later or change.canary_passed


@LIVES
@given(histories())
def test_never_more_than_one_stage_is_touched_and_not_proven(changes: list[Change]) -> None:
    for change in changes:
        if change.plan is None:
            continue
        begun = {*change.progress.done, change.progress.started} - {None}
        unproven = {i for i in begun if i is not None and (i == change.progress.started or open_gates(change, i))}
        assert len({stage_of(change, i) for i in unproven}) <= 1


@LIVES
@given(histories())
def test_an_undo_touches_only_instances_that_were_begun_and_all_of_those(changes: list[Change]) -> None:
    last = changes[-1]
    assert last.plan is not None
    if not last.undoing:
        assert set(last.do.done) == set(range(len(last.plan.steps)))
        return
    begun = {*last.do.done, last.do.started} - {None}
    touched = {name(last.plan.steps[i]) for i in begun if i is not None}
    undone = {(last.plan.undo[i].kind, name(last.plan.undo[i])) for i in last.undo.done}
    assert {instance for _, instance in undone} <= touched
    for index in begun:
        assert index is not None
        step = last.plan.steps[index]
        if step.kind in {"write", "restart"}:
            assert (step.kind, name(step)) in undone
        if step.kind in {"drain", "restart"} and any(
            s.kind == "admit" and name(s) == name(step) for s in last.plan.undo
        ):
            assert ("admit", name(step)) in undone


@LIVES
@given(histories())
def test_no_step_is_done_twice_and_nothing_is_begun_after_an_abort(changes: list[Change]) -> None:
    last = changes[-1]
    assert len(set(last.do.done)) == len(last.do.done)
    assert len(set(last.undo.done)) == len(last.undo.done)
    for before, after in pairwise(changes):
        if before.abort is not None and not before.undoing:
            assert {*after.do.done, after.do.started} <= {*before.do.done, before.do.started}


def through(of: Plan) -> list[str]:
    """What a calm run does and asks, in order."""
    run = Run(approved(of))
    while run.turn():
        pass
    return run.log


def test_a_stage_drains_writes_restarts_asks_and_gives_back_all_of_its_instances_together() -> None:
    assert through(plan([{"decode": ("gpu1", "gpu2")}], drained=("decode",))) == [
        "drain decode@gpu1",
        "drain decode@gpu2",
        "write decode@gpu1",
        "write decode@gpu2",
        "restart decode@gpu1",
        "restart decode@gpu2",
        *(f"{gate} decode@gpu1" for gate in ("incarnation", "port", "health", "environment")),
        *(f"{gate} decode@gpu2" for gate in ("incarnation", "port", "health", "environment")),
        "admit decode@gpu1",
        "admit decode@gpu2",
        "admitted decode@gpu1",
        "admitted decode@gpu2",
    ]


def test_a_wave_goes_on_when_the_one_before_is_proven_and_services_in_it_follow_one_another() -> None:
    log = through(plan([{"prefill": ("gpu1",), "decode": ("gpu1",)}, {"decode": ("gpu2",)}]))
    assert [said for said in log if said.startswith(("restart", "environment"))] == [
        "restart prefill@gpu1",
        "restart decode@gpu1",
        "environment decode@gpu1",
        "restart decode@gpu2",
        "environment decode@gpu2",
    ]


def test_a_plan_that_does_not_speak_of_replicas_restarts_one_instance_after_the_other() -> None:
    old = plan([{"decode": ("gpu1", "gpu2")}]).model_copy(update={"rolling": ()})
    steps = tuple(sorted(old.steps, key=lambda s: (s.host, s.kind == "restart")))
    log = through(old.model_copy(update={"steps": steps}))
    assert log.index("environment decode@gpu1") < log.index("write decode@gpu2")


@pytest.mark.parametrize(
    ("begun", "undone"),
    [
        (["drain decode@gpu1"], ["admit decode@gpu1"]),
        (["drain decode@gpu1", "write decode@gpu1"], ["write decode@gpu1", "admit decode@gpu1"]),
        (
            ["drain decode@gpu1", "write decode@gpu1", "restart decode@gpu1"],
            ["drain decode@gpu1", "write decode@gpu1", "restart decode@gpu1", "admit decode@gpu1"],
        ),
    ],
)
def test_an_undo_gives_back_what_was_taken_out_and_takes_out_only_for_a_restart(
    begun: list[str], undone: list[str]
) -> None:
    run = Run(approved(plan([{"decode": ("gpu1",)}, {"decode": ("gpu2",)}], drained=("decode",))))
    for _ in begun:
        run.turn()
    assert run.log == begun
    run.tell(e.UndoStarted(actor=None, findings=()))
    assert [short(step) for _, step in at_work(run.change)] == undone


def test_an_abort_waits_for_the_gates_of_every_restart_that_was_issued_and_begins_none() -> None:
    run = Run(approved(plan([{"decode": ("gpu1", "gpu2", "gpu3")}])))
    for _ in range(5):  # three writes, two restarts
        run.turn()
    run.tell(e.AbortAsked(actor=b.ANA))
    while not run.change.undoing:
        run.turn()
    assert [said for said in run.log if said.startswith("restart")] == ["restart decode@gpu1", "restart decode@gpu2"]
    assert "environment decode@gpu2" in run.log
