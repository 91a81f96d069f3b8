"""What the ledger tells of each of several restarts that were issued before the gates of any of them were asked."""

from __future__ import annotations

from policies import events as e
from policies.change import Change, apply
from policies.events import GENESIS, Entry
from policies.finding import Finding, Verdict
from policies.plan import RestartStep
from tests.policies import builders as b
from tests.policies.waves import plan
from workers.issued import Issued, told

PLAN = plan([{"decode": ("gpu1", "gpu2")}])  # write, write, restart, restart
HOSTS = {2: "gpu1", 3: "gpu2"}


def done(index: int, at: float, pid: int) -> e.StepDone:
    told = {"part": "do", "index": index, "step": "restart", "instance": f"decode@{HOSTS[index]}", "host_at": at}
    return e.StepDone.model_validate({**told, "before": b.life(pid)})


def passed(index: int, gate: str) -> e.GatePassed:
    well = Verdict(answer="pass", findings=(Finding(code="x.y", effect="note", values={"restarts": 0}),))
    told = {"part": "do", "index": index, "instance": f"decode@{HOSTS[index]}", "gate": gate, "verdict": well}
    return e.GatePassed.model_validate({**told, "incarnation": b.life(50 + index)})


def issued(index: int, *more: e.Event) -> Issued:
    events: tuple[e.Event, ...] = (
        b.asked(),
        b.planned((PLAN,)),
        e.ApprovalGiven(actor=b.BEN, order=PLAN.order, digest=PLAN.digest, complete=True),
        e.Started(worker="w1", tokens={}),
        *more,
    )
    change, entries = Change("C-1"), []
    for number, event in enumerate(events, start=1):
        change = apply(change, event, b.NOW)
        entries.append(Entry(seq=number, subject="C-1", version=number, at=b.NOW, event=event, prev=GENESIS))
    step = PLAN.steps[index]
    assert isinstance(step, RestartStep)
    return told(entries, change, step, "do", index)


def test_each_restart_has_the_time_and_the_life_that_are_its_own() -> None:
    both = (done(2, 100.0, 7), done(3, 130.0, 8))
    first, second = issued(2, *both), issued(3, *both)
    assert (first.at, first.before) == (100.0, b.life(7))
    assert (second.at, second.before) == (130.0, b.life(8))


def test_gates_of_another_restart_are_not_counted_as_passed_here() -> None:
    more = (done(2, 100.0, 7), done(3, 130.0, 8), passed(2, "incarnation"), passed(2, "port"))
    assert issued(2, *more).passed == {"incarnation", "port"}
    assert issued(2, *more).life == b.life(52)
    assert (issued(3, *more).passed, issued(3, *more).life) == (frozenset(), None)


def test_who_is_asked_behind_others_is_asked_late_and_who_is_alone_is_not() -> None:
    assert not issued(2, done(2, 100.0, 7)).late
    assert issued(2, done(2, 100.0, 7), done(3, 130.0, 8)).late
    assert not issued(3, done(2, 100.0, 7), done(3, 130.0, 8)).late
    assert issued(3, done(2, 100.0, 7), done(3, 130.0, 8), passed(2, "health")).late
    assert not issued(3, done(2, 100.0, 7), passed(2, "health"), done(3, 130.0, 8)).late
