"""Small, valid events for tests of the ledger."""

from __future__ import annotations

from policies import events as e
from policies.evidence import Point, Summary
from policies.facts import Incarnation
from policies.finding import Finding, Verdict
from policies.intents import Actor, SetKnob, Where
from policies.plan import Plan, RestartStep
from policies.recording import typed

ANA = Actor(id="U1", team="T1", name="ana", roles=("engineers",))
BEN = Actor(id="U2", team="T1", name="ben", roles=("approvers",))
OLD = Incarnation(main_pid=1811, started=100, invocation_id="aa")
INSTANCE = "decode@gpu1"


def asked(said: str = "set TARGET_CTAS=512") -> e.Asked:
    """Ana asks."""
    return e.Asked(
        intent=SetKnob(knob="TARGET_CTAS", value="512"),
        actor=ANA,
        where=Where(channel="C1", thread_ts="1.2"),
        said=said,
        normalised=said,
        fleet_sha256="f" * 64,
    )


def plan() -> Plan:
    """One restart of decode@gpu1."""
    step = RestartStep(
        host="gpu1",
        service="decode",
        unit="decode.service",
        argv=("systemctl", "restart", "decode.service"),
        before=OLD,
        changed=True,
        gates=("health",),
    )
    return Plan(
        order="decode-only",
        fleet_sha256="f" * 64,
        knob="TARGET_CTAS",
        value="512",
        targets=(),
        steps=(step,),
        undo=(step,),
        files=(),
        incarnations=((INSTANCE, OLD),),
        policy=(),
    )


def planned(expires_at: float = 1800.0) -> e.Planned:
    """One plan, one approval needed."""
    return e.Planned(
        plans=(plan(),),
        findings=(Finding(code="x.y", effect="note", values={"n": 3, "f": 1.0, "s": "ä\u2028", "none": None}),),
        approvals=1,
        by="approvers",
        mention=("<@U2>",),
        expires_at=expires_at,
    )


def approved() -> e.ApprovalGiven:
    """Ben agrees; that is enough."""
    return e.ApprovalGiven(actor=BEN, order="decode-only", digest=plan().digest, complete=True)


def started(token: int = 1) -> e.Started:
    """A worker begins."""
    return e.Started(worker="w1", tokens={INSTANCE: token})


def health_passed(index: int = 0) -> e.GatePassed:
    """The health gate passed after 72.5 s."""
    return e.GatePassed(
        part="do", index=index, instance=INSTANCE, gate="health", verdict=Verdict(answer="pass"), waited_s=72.5
    )


def succeeded() -> e.Succeeded:
    """The end, as wanted."""
    return e.Succeeded(
        knob="TARGET_CTAS", order="decode-only", was={INSTANCE: None}, now={INSTANCE: "512"}, took_s=80.25
    )


def evidence(record_id: str) -> e.EvidenceRecorded:
    """A record that somebody typed."""
    summary = Summary(knob="TARGET_CTAS", value="512", points=(Point(concurrency=64, ratio=1.128),))
    record = typed(summary, "a.yaml", "0" * 64).recorded(record_id, "ana", 5.0)
    return e.EvidenceRecorded(record=record)


def clicked(what: str = "confirm") -> e.ClickRefused:
    """A refused click; allowed in every state."""
    return e.ClickRefused(actor=ANA, what=what, finding=Finding(code="click.own", effect="refuse"))


def whole_life() -> list[e.Event]:
    """From asked to succeeded."""
    return [
        asked(),
        planned(),
        approved(),
        started(),
        e.StepStarted(part="do", index=0, step="restart", instance=INSTANCE),
        e.StepDone(part="do", index=0, step="restart", instance=INSTANCE, host_at=1000.5, before=OLD),
        health_passed(),
        succeeded(),
    ]
