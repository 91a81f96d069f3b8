"""One valid event of every kind, and the changes that stand in every state; for tests of the life of a change."""

from __future__ import annotations

from policies import events as e
from policies.causes.verdict import Verdict as CauseVerdict
from policies.change import Change, apply
from policies.citation import Citation
from policies.events import EVENT
from policies.finding import Finding, Verdict
from policies.intents import Actor, StateCause, Where
from policies.plan import Plan
from policies.probe import probe
from policies.proof import Proof
from policies.statement import Judgement, Statement, Times
from tests.policies import builders as b

INSTANCE = "decode@gpu1"
NOTE = Finding(code="x.y", effect="note", values={"n": 3, "share": 0.5, "text": "ä\u2028", "none": None})
DONE = {"part": "do", "index": 1, "step": "write", "instance": INSTANCE}


BAKE = e.BakeReading(
    incarnation=b.life(), n_restarts=0, result="success", active_state="active", counters={"http-5xx": 2.0}
)


REQUIRED = e.Required(
    instance=INSTANCE,
    condition="ttft_s < 2",
    word="holds",
    n=3,
    citations=(Citation(query="q", value=0.8, unit="s", time=b.NOW, source="s", name="ttft_s"),),
)


PROBE = probe("router", b.NOW, 17.9, [0.3, 0.2, 0.4], ())


def every(offered: tuple[Plan, ...]) -> dict[str, e.Event]:
    """One event of each kind that a change can have, by kind; the approval completes the quorum."""
    verdict = Verdict(answer="pass", findings=(NOTE,))
    gate = {"part": "do", "index": 2, "instance": INSTANCE, "gate": "health"}
    proof = Proof(
        instance=INSTANCE,
        variable=b.ENV,
        wanted="512",
        verdict="live",
        rung="environment",
        processes=(b.process("512"), b.process(None, pid=2102, main=False)),
        findings=(NOTE,),
    )
    events: tuple[e.Event, ...] = (
        b.asked(),
        b.planned(offered),
        e.Refused(findings=(NOTE,)),
        e.NothingToDo(findings=(NOTE,)),
        e.Replan(findings=(NOTE,)),
        e.ApprovalGiven(actor=b.BEN, order=offered[0].order, digest=offered[0].digest, complete=True),
        e.ClickRefused(actor=b.ANA, what="confirm", finding=NOTE),
        e.Reminded(),
        e.Denied(actor=b.BEN),
        e.Expired(),
        e.Queued(position=2, behind=("C-7",), on=(INSTANCE,), held="C-7", left_s=180.5, n=7),
        e.Rebased(plan=offered[0], findings=(NOTE,)),
        e.Started(worker="w1", tokens={INSTANCE: 1}),
        e.StepStarted.model_validate(DONE),
        e.StepDone.model_validate({**DONE, "host_at": 1000.5, "before": b.life(), "sha256": "0" * 64}),
        e.GatePassed.model_validate(
            {**gate, "verdict": verdict, "incarnation": b.life(9), "waited_s": 72.5, "host_at": 1073.0}
        ),
        e.GateFailed.model_validate({**gate, "verdict": Verdict(answer="fail", findings=(NOTE,))}),
        e.UndoStarted(actor=None, findings=(NOTE,)),
        e.AbortAsked(actor=b.ANA),
        e.RetryAsked(actor=b.ANA),
        e.UndoAsked(actor=b.ANA),
        e.KeepChosen(actor=b.BEN),
        e.Held(findings=(NOTE,)),
        e.Unknown(findings=(NOTE,)),
        e.CanaryStarted(until=b.NOW + 30.0, readings={INSTANCE: BAKE}),
        e.CanaryPassed(instances=(INSTANCE,), findings=(NOTE,), required=(REQUIRED,)),
        e.CanaryFailed(instances=(INSTANCE,), verdict=Verdict(answer="fail", findings=(NOTE,)), required=(REQUIRED,)),
        e.Proved(proofs={INSTANCE: proof}, findings=(NOTE,)),
        e.BakeStarted(until=b.NOW + 300.0, readings={INSTANCE: BAKE}),
        e.Probed(probe=PROBE),
        e.Baked(findings=(NOTE,)),
        e.Succeeded(knob="TARGET_CTAS", order="co-restart", was={INSTANCE: None}, now={INSTANCE: "512"}, took_s=80.25),
        e.RolledBack(findings=(NOTE,)),
        e.Aborted(findings=(NOTE,)),
        e.Failed(findings=(NOTE,)),
        e.Ratified(actor=b.BEN),
        e.RatifyReminded(),
        e.Lapsed(undo="C-2", back=b.asked().intent),
    )
    return {event.kind: event for event in events}


def evidence_recorded() -> e.EvidenceRecorded:
    """A kind that is about a record and not about a change."""
    return e.EvidenceRecorded(record=b.record())


def suspicion_reminded() -> e.SuspicionReminded:
    """A kind that is about a suspicion."""
    return e.SuspicionReminded(due_at=b.NOW + 604_800.0)


def outside_seen() -> e.OutsideSeen:
    """A kind that is about an instance."""
    found = e.Difference(what="edited", name="/etc/sgl/a.env", was="a" * 64, now="b" * 64)
    return e.OutsideSeen(instance=INSTANCE, since=b.NOW - 60.0, seen_at=b.NOW, found=(found,))


def locks() -> tuple[e.Locked, e.Unlocked]:
    """The kinds that are about a lock."""
    where = Where(channel="C1", thread_ts=None)
    put_on = e.Locked(scope="decode", instances=(INSTANCE,), actor=b.ANA, because="profiling", where=where)
    return put_on, e.Unlocked(actor=b.BEN)


def confirmed() -> e.Confirmed:
    """The kind that opens what a rollback leaves."""
    return e.Confirmed(actor=b.BEN, service="decode", taken=("0.5.24",))


def judgement() -> Judgement:
    """The queue is refuted as what happened, by a reading of then."""
    citation = Citation(query="q", value=0.0, unit="requests", time=b.NOW, source="s", name="queue_reqs")
    return Judgement(
        at=b.NOW,
        effect=Times(start=b.NOW - 2, end=b.NOW),
        baseline=Times(start=b.NOW - 600, end=b.NOW - 3),
        verdict=CauseVerdict(word="refuted", name="queued-behind-load", reason=NOTE, citations=(citation,)),
        load=(citation,),
    )


def silences() -> tuple[e.Event, ...]:
    """The kinds that are about silences of a change at an Alertmanager."""
    known = {"service": "decode", "silence": "1a2b-3c"}
    return (
        e.SilenceMade.model_validate({**known, "until": b.NOW + 600.0, "matchers": ('job="decode"',)}),
        e.SilenceProlonged.model_validate({**known, "until": b.NOW + 900.5}),
        e.SilenceEnded.model_validate({**known, "why": "ended"}),
        e.SilenceFailed(doing="end", services=("decode",), error="no answer in time", until=b.NOW + 900.5),
    )


def statement_made() -> e.StatementMade:
    """A kind that is about a statement."""
    said = StateCause(name="queued-behind-load", of="C-1")
    where = Where(channel="C0PERF")
    return e.StatementMade(
        statement=Statement(id="st-4", said=said, actor=b.ANA, where=where, about="C-1", judged=judgement())
    )


def statement_disputed() -> e.StatementDisputed:
    """A kind that follows it."""
    return e.StatementDisputed(actor=b.BEN, because="it did not", judged=judgement())


def asides() -> dict[str, e.Event]:
    """One event of each kind that is about no change, by kind."""
    found: tuple[e.Event, ...] = (
        evidence_recorded(),
        suspicion_reminded(),
        outside_seen(),
        e.DriftSeen(instance=INSTANCE, found=(NOTE,)),
        *locks(),
        *silences(),
        confirmed(),
        statement_made(),
        statement_disputed(),
        e.StatementJudgedAgain(change="C-2", judged=judgement()),
    )
    return {event.kind: event for event in found}


def kinds() -> set[str]:
    """Every kind of event that the ledger can hold."""
    schema = EVENT.json_schema()
    return set(schema["discriminator"]["mapping"])


# The kinds that bring a change to a named state, for tests that need one that stands there.
PATHS: dict[str, tuple[str, ...]] = {
    "asked": ("asked",),
    "planned": ("asked", "planned"),
    "refused": ("asked", "refused"),
    "nothing_to_do": ("asked", "nothing_to_do"),
    "approved": ("asked", "planned", "approval_given"),
    "denied": ("asked", "planned", "denied"),
    "expired": ("asked", "planned", "expired"),
    "running": ("asked", "planned", "approval_given", "started"),
    "running, abort asked": ("asked", "planned", "approval_given", "started", "abort_asked"),
    "held": ("asked", "planned", "approval_given", "started", "held"),
    "held at a failed gate": ("asked", "planned", "approval_given", "started", "gate_failed", "held"),
    "undoing": ("asked", "planned", "approval_given", "started", "undo_started"),
    "held while undoing": ("asked", "planned", "approval_given", "started", "undo_started", "held"),
    "unknown": ("asked", "planned", "approval_given", "started", "unknown"),
    "unknown while undoing": ("asked", "planned", "approval_given", "started", "undo_started", "unknown"),
    "succeeded": ("asked", "planned", "approval_given", "started", "succeeded"),
    "rolled_back": ("asked", "planned", "approval_given", "started", "undo_started", "rolled_back"),
    "failed": ("asked", "planned", "approval_given", "started", "failed"),
    "aborted": ("asked", "planned", "aborted"),
}


def standing(name: str, *, asker: Actor = b.ANA, **planned: object) -> Change:
    """A change that stands in the state of that name; `planned` changes fields of its Planned event."""
    offered = b.plans()
    events = every(offered)
    events["asked"] = b.asked(asker)
    events["planned"] = b.planned(offered, **planned)
    change = Change("C-1")
    for number, kind in enumerate(PATHS[name]):
        change = apply(change, events[kind], b.NOW + number)
    return change
