"""Changes as entries, for tests of cards, thread and narrator: the restore of TARGET_CTAS with its plans."""

from __future__ import annotations

from collections.abc import Sequence

from policies import events as e
from policies.evidence import Correctness, Point, Record, Summary
from policies.facts import Incarnation, ProcessEnv
from policies.finding import Finding, Verdict
from policies.fleet import Fleet, HttpCheck, Knob, Match, Role, Rule, Service
from policies.fleet import Host as FleetHost
from policies.intents import Actor, RestoreKnob, Where
from policies.plan import Estimate, Plan, RestartStep, Step, Target, WriteStep
from policies.proof import Proof
from policies.recording import typed

T0 = 1_764_600_000.0
VARIABLE = "SGLANG_SM120_MMA_TARGET_CTAS"
PORTS = {"prefill": 30000, "decode": 30001, "router": 30080}
GATES = ("incarnation", "port", "health")
PASS = Verdict(answer="pass")
MEDIANS = (("prefill@gpu1", 68.0), ("decode@gpu1", 72.0), ("router@gpu1", 20.0))


def life(pid: int) -> Incarnation:
    return Incarnation(main_pid=pid, started=pid * 10, invocation_id=f"{pid:032x}")


def fleet(*, approvers: tuple[str, ...] = (), group: str | None = None) -> Fleet:
    services = {
        name: Service(
            name=name,
            on=("gpu1",),
            unit=f"sglang-{name}.service",
            health=HttpCheck(url=f"http://127.0.0.1:{port}/health"),
        )
        for name, port in PORTS.items()
    }
    roles = {
        "engineers": Role(name="engineers", users=approvers, groups=(group,) if group else ()),
        "approvers": Role(name="approvers", users=approvers),
    }
    return Fleet(
        name="dsv4",
        hosts={"gpu1": FleetHost(name="gpu1", address="192.0.2.11", user="clawback")},
        services=services,
        restarts={"co-restart": ("prefill", "decode", "router"), "decode-only": ("decode",)},
        knobs={
            "TARGET_CTAS": Knob(
                name="TARGET_CTAS",
                env=VARIABLE,
                on=("decode",),
                type="int",
                range=(1, 4096),
                restarts=("co-restart", "decode-only"),
            )
        },
        roles=roles,
        rules=(Rule(match=Match(kind="knob"), ask="engineers", approvals=1, by="approvers", line=40),),
        sha256="f" * 64,
    )


def restart(service: str, pid: int, *, changed: bool = False) -> RestartStep:
    unit = f"sglang-{service}.service"
    return RestartStep(
        host="gpu1",
        service=service,
        unit=unit,
        argv=("systemctl", "restart", "--no-block", unit),
        before=life(pid),
        changed=changed,
        gates=(*GATES, "environment") if changed else GATES,
    )


def write(text: str | None, before: str | None) -> WriteStep:
    return WriteStep(
        host="gpu1",
        service="decode",
        unit="sglang-decode.service",
        path="/etc/systemd/system/sglang-decode.service.d/zz-clawback.conf",
        before=before,
        text=text,
    )


def plan(order: str = "co-restart", *, warnings: tuple[Finding, ...] = (), estimate: bool = True) -> Plan:
    text = f'[Service]\nEnvironment="{VARIABLE}=512"\n'
    steps: tuple[Step, ...] = (write(text, None), restart("decode", 1900, changed=True))
    undo: tuple[Step, ...] = (write(None, text), restart("decode", 1900, changed=True))
    if order == "co-restart":
        steps = (restart("prefill", 1811), *steps, restart("router", 1990))
        undo = (restart("prefill", 1811), *undo, restart("router", 1990))
    return Plan(
        order=order,
        fleet_sha256="f" * 64,
        knob="TARGET_CTAS",
        value="512",
        targets=(
            Target(
                instance="decode@gpu1",
                variable=VARIABLE,
                now=None,
                now_decided_by=None,
                then="512",
                then_decided_by="/etc/systemd/system/sglang-decode.service.d/zz-clawback.conf:2",
            ),
        ),
        steps=steps,
        undo=undo,
        files=(),
        incarnations=(),
        policy=(),
        warnings=warnings,
        estimate=Estimate(median_s=160.0, p90_s=185.0, n=7, medians=MEDIANS) if estimate else None,
    )


def record(knob: str = "TARGET_CTAS") -> Record:
    points = tuple(Point(concurrency=c, ratio=r) for c, r in ((64, 1.128), (96, 1.057), (80, 1.012)))
    summary = Summary(
        knob=knob,
        value="512",
        points=points,
        no_worse_up_to=32,
        correctness=Correctness(compared=200, differing=0),
    )
    return typed(summary, "ab.json", "a" * 64).recorded("ab-17", "U0ANA", T0 - 172_800)


def ana(user: str = "U0ANA") -> Actor:
    return Actor(id=user, team="T0SANDBOX", name="ana", roles=("engineers",))


def ben(user: str = "U0BEN") -> Actor:
    return Actor(id=user, team="T0SANDBOX", name="ben", roles=("engineers", "approvers"))


def asked(channel: str = "C0PERF", thread_ts: str | None = None, *, requester: Actor | None = None) -> e.Asked:
    return e.Asked(
        intent=RestoreKnob(knob="TARGET_CTAS", value="512"),
        actor=requester or ana(),
        where=Where(channel=channel, thread_ts=thread_ts),
        said="restore TARGET_CTAS=512",
        normalised="/knob restore TARGET_CTAS=512",
        fleet_sha256="f" * 64,
    )


def planned(*plans: Plan, approvals: int = 1, dry: bool = False) -> e.Planned:
    needs: dict[str, str | int | float | None] = {"count": 1, "role": "approvers", "actor": "U0ANA", "line": 40}
    return e.Planned(
        plans=plans or (plan(), plan("decode-only", estimate=False)),
        findings=(Finding(code="rule.needs-approval", effect="needs", values=needs),),
        approvals=approvals,
        by="approvers",
        mention=("<@U0BEN>",),
        expires_at=T0 + 1800,
        dry=dry,
    )


def confirmed(order: str = "co-restart", actor: Actor | None = None) -> e.ApprovalGiven:
    return e.ApprovalGiven(actor=actor or ben(), order=order, digest=plan(order).digest, complete=True)


def started(order: str = "co-restart", *, resumed: bool = False) -> e.Started:
    return e.Started(worker="host:1", tokens=dict.fromkeys(plan(order).services, 7), resumed=resumed)


def step(index: int, order: str = "co-restart", *, part: e.Part = "do") -> list[e.Event]:
    """The events of one step that goes well, with its gates."""
    the_plan = plan(order)
    one = (the_plan.undo if part == "undo" else the_plan.steps)[index]
    name = f"{one.service}@{one.host}"
    told: list[e.Event] = [e.StepStarted(part=part, index=index, step=one.kind, instance=name)]
    before = one.before if isinstance(one, RestartStep) else None
    at = T0 + 100 + 80 * index
    told.append(e.StepDone(part=part, index=index, step=one.kind, instance=name, host_at=at, before=before))
    new = life(2044 + index)
    told += [
        e.GatePassed(
            part=part,
            index=index,
            instance=name,
            gate=gate,
            verdict=PASS,
            incarnation=new,
            waited_s=68.2 if gate == "health" else None,
            host_at=at + 68.2,
        )
        for gate in one.gates
    ]
    return told


def proof(wanted: str = "512") -> Proof:
    def seen(pid: int, main: bool, answer: str, value: str | None) -> ProcessEnv:
        return ProcessEnv.model_validate(
            {"pid": pid, "name": "sglang", "main": main, "variable": VARIABLE, "answer": answer, "value": value}
        )

    processes = (
        seen(2101, True, "present", wanted),
        seen(2102, False, "unreadable", None),
        seen(2103, False, "unreadable", None),
    )
    fields = {"variable": VARIABLE, "wanted": wanted, "rung": "environment", "verdict": "live"}
    if "instance" in Proof.model_fields:
        fields["instance"] = "decode@gpu1"
    return Proof.model_validate({**fields, "processes": processes, "findings": ()})


def succeeded() -> list[e.Event]:
    """A co-restart that goes well, from the question to the end."""
    events: list[e.Event] = [asked(), planned(), confirmed(), started()]
    for index in range(4):
        events += step(index)
    events.append(e.Proved(proofs={"decode@gpu1": proof()}, findings=()))
    events.append(
        e.Succeeded(
            knob="TARGET_CTAS",
            order="co-restart",
            was={"decode@gpu1": None},
            now={"decode@gpu1": "512"},
            took_s=177.4,
        )
    )
    return events


def chained(events: Sequence[e.Event], change_id: str = "C-142") -> list[e.Entry]:
    """Entries of one change, ten seconds apart, hash-chained."""
    entries: list[e.Entry] = []
    prev = e.GENESIS
    for index, event in enumerate(events):
        entry = e.Entry(
            seq=index + 1, subject=change_id, version=index + 1, at=T0 + 10 * index, event=event, prev=prev
        ).sealed()
        entries.append(entry)
        prev = entry.hash
    return entries
