"""What became of versions: good, bad or neither by their newest deploy, and where a rollback goes."""

from __future__ import annotations

from typing import Literal, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import events as e
from policies.change import Change, fold
from policies.deploys.history import Deployment, End, deployment_of, good, rollback_to, standing_of, standings
from policies.deploys.proof import prove_version
from policies.deploys.seen import Link, ReleasesSeen, Seen, Stands, VersionSeen
from policies.deploys.strategy import CommandLine, DeployEntry, Releases, VersionSource, sound_ref
from policies.finding import Finding
from policies.intents import Deploy
from policies.plan import Plan
from policies.proof import Proof
from policies.undoing import is_changed, no_way_back, undoes_itself, undone
from tests.policies import builders as b
from tests.policies.deploy_cases import planned

Word = Literal["deploy", "rollback"]
ENDS: tuple[End, ...] = get_args(End)
REFS = ("v1", "v2", "v3")


def one(ref: str, end: End = "proven", word: Word = "deploy", was: tuple[str, ...] = (), at: float = 0.0) -> Deployment:
    return Deployment("C-1", word, ref, was, end, at)


deployments = st.builds(
    one, st.sampled_from(REFS), st.sampled_from(ENDS), st.sampled_from(("deploy", "rollback")),
    st.lists(st.sampled_from(REFS), max_size=2).map(tuple),
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(deployments, max_size=8), st.sets(st.sampled_from(REFS), max_size=2))
def test_a_rollback_only_goes_to_what_was_proven_and_never_to_what_runs_or_was_taken_back_since(
    past: list[Deployment], running: set[str]
) -> None:
    found = rollback_to("decode", past, running)
    if isinstance(found, Finding):
        assert found.effect == "refuse"
        return
    assert found.ref not in running
    proven = next(i for i, d in enumerate(past) if d.ref == found.ref and d.end == "proven")
    for later in past[:proven]:
        assert not (later.ref == found.ref and later.end in {"undone", "kept", "unproven"})
        assert not (later.word == "rollback" and later.end != "nothing" and found.ref in later.was)
    last = next(d for d in past if d.end not in {"open", "nothing"})
    assert not (last.word == "rollback" and last.end in {"proven", "unproven", "kept"})


@settings(max_examples=200, deadline=None)
@given(st.lists(deployments, max_size=8))
def test_every_version_has_one_standing(past: list[Deployment]) -> None:
    found = standings(past)
    assert len({s.ref for s in found}) == len(found)
    assert {s.ref for s in good(past)} == {s.ref for s in found if s.word == "good"}


def plan_of(**case: object) -> Plan:
    plans = planned({"ref": "v2", "order": "decode-only", **case})[2].plans
    return plans[0]


def carried_out(plan: Plan, *ends: e.Event, live: bool = True, watched: bool = True) -> Change:
    """A deploy with this plan that ended so."""
    asked = b.asked().model_copy(update={"intent": Deploy(service="decode", ref="v2")})
    proof = Proof(
        instance="decode@gpu1", variable="version", wanted="v2", verdict="live" if live else "unproven",
        rung="reported", of="version",
    )  # fmt: skip
    events: list[e.Event] = [
        asked,
        b.planned((plan,)),
        e.ApprovalGiven(actor=b.BEN, order=plan.order, digest=plan.digest, complete=True),
        e.Started(worker="w", tokens={"decode@gpu1": 1}),
        e.Proved(proofs={"decode@gpu1": proof}, findings=()),
        e.BakeStarted(until=b.NOW, readings={}),
        *([e.Baked(findings=())] if watched else []),
        *ends,
    ]
    entries, prev = [], e.GENESIS
    for number, event in enumerate(events, start=1):
        entry = e.Entry(seq=number, subject="C-9", version=number, at=b.NOW + number, event=event, prev=prev).sealed()
        entries.append(entry)
        prev = entry.hash
    return fold("C-9", entries)


def done(plan: Plan) -> e.Succeeded:
    was, now = {"decode@gpu1": "v1"}, {"decode@gpu1": "v2"}
    return e.Succeeded(knob=None, order=plan.order, was=was, now=now, took_s=1.0, service="decode", ref="v2")


@pytest.mark.parametrize(
    ("ends", "live", "watched", "end"),
    [
        ((), True, True, "open"),
        (("done",), True, True, "proven"),
        (("done",), False, True, "unproven"),
        (("done",), True, False, "unproven"),
        ((e.UndoStarted(actor=None, findings=()), e.RolledBack(findings=())), True, True, "undone"),
        ((e.Held(findings=()), e.KeepChosen(actor=b.BEN)), True, True, "kept"),
        ((e.Aborted(findings=()),), True, True, "nothing"),
    ],
)
def test_a_change_is_the_deployment_that_its_events_tell(
    ends: tuple[e.Event | str, ...], live: bool, watched: bool, end: End
) -> None:
    plan = plan_of()
    events = [done(plan) if isinstance(one, str) else one for one in ends]
    found = deployment_of(carried_out(plan, *events, live=live, watched=watched))
    assert found is not None
    assert (found.change, found.word, found.ref, found.was, found.end) == ("C-9", "deploy", "v2", ("v1",), end)
    assert found.at == b.NOW + (7 if watched else 6) + len(events) if events else True


def test_a_change_that_was_never_carried_out_or_changes_a_knob_is_no_deployment() -> None:
    assert deployment_of(Change("C-1")) is None
    assert deployment_of(carried_out(b.plans()[0])) is None


def test_a_version_that_nobody_deployed_has_no_standing() -> None:
    assert standing_of([one("v1")], "v9") is None


# --- what follows a failed gate and an abort ---


def test_a_deploy_undoes_itself_only_when_its_own_gate_fails_and_there_is_a_way_back() -> None:
    plan = plan_of()
    step = next(s for s in plan.steps if s.kind == "restart")
    change = carried_out(plan)
    assert undoes_itself(change, "do", "fail", (), changed=is_changed(plan, step))
    assert not undoes_itself(change, "do", "inconclusive", (), changed=is_changed(plan, step))  # no data is no failure
    assert not undoes_itself(change, "undo", "fail", (), changed=is_changed(plan, step))
    assert not undoes_itself(change, "do", "fail", (), changed=False)
    foreign = Finding(code="gate.port.foreign", effect="refuse")
    assert not undoes_itself(change, "do", "fail", (foreign,), changed=is_changed(plan, step))
    no_link = carried_out(plan_of(now=None, unread="refused"))
    assert not undoes_itself(no_link, "do", "fail", (), changed=is_changed(plan, step))


def test_an_abort_of_a_deploy_without_a_way_back_waits_for_a_person_once_something_was_changed() -> None:
    plan = plan_of(now=None, unread="refused")
    change = carried_out(plan)
    assert no_way_back(change) is None
    switched = e.StepDone(part="do", index=0, step="switch", instance="decode@gpu1", host_at=b.NOW)
    stays = no_way_back(carried_out(plan, switched))
    assert stays is not None
    assert (stays.code, stays.values) == ("hold.no-way-back", {"service": "decode", "ref": "v2"})
    assert no_way_back(carried_out(plan_of(), switched)) is None


def test_what_an_undo_brought_back_is_named() -> None:
    assert undone(plan_of()).values == {"service": "decode", "ref": "v1"}
    assert undone(b.plans()[0]).code == "undo.done"


# --- proof ---

ENTRY = DeployEntry(
    strategy=Releases(path="/srv/decode"), version=VersionSource(http="http://127.0.0.1:1/v"), restarts=("all",)
)


def seen(text: str | None = "v2", *, link: str = "v2", stands: str | None = "v2") -> Seen:
    runs = () if stands is None else (Stands(pid=1, main=True, release=stands),)
    there = ReleasesSeen(
        link=Link(state="link", release=link, target=link, exists=True),
        releases=(),
        verified=(),
        difference=None,
        changes=None,
        runs=runs,
        at=b.NOW,
    )
    return Seen("decode@gpu1", link, VersionSeen(text=text, source="url", error=None if text else "503"), there)


@pytest.mark.parametrize(
    ("what", "verdict", "rung"),
    [
        (seen(), "live", "reported"),
        (seen(stands=None), "live", "reported"),
        (seen(text=None), "unproven", "process"),
        (seen(text="v1"), "mixed", "process"),
        (seen(text="v1", stands="v1"), "not_live", "configured"),
        (seen(stands="v1"), "mixed", "configured"),
        (seen(link="v1", stands="v1", text="v1"), "not_live", "none"),
        (seen(link="v1"), "live", "none"),
    ],
)
def test_a_version_is_proven_rung_by_rung(what: Seen, verdict: str, rung: str) -> None:
    proof = prove_version(ENTRY, what, "v2", "v2")
    assert (proof.verdict, proof.rung, proof.reported, proof.of) == (verdict, rung, what.version.text, "version")


def test_a_version_that_the_next_start_would_not_run_is_told() -> None:
    (finding,) = prove_version(ENTRY, seen(link="v1"), "v2", "v2").findings
    assert (finding.code, finding.values) == ("proof.named-other", {"found": "v1", "ref": "v2"})


def test_a_version_from_a_file_proves_no_more_than_what_the_disk_says() -> None:
    entry = ENTRY.model_copy(update={"version": VersionSource(file="/srv/decode/current/VERSION")})
    assert prove_version(entry, seen(stands=None), "v2", "v2").rung == "effective"


def test_a_command_is_proven_by_what_is_read_back_alone() -> None:
    entry = ENTRY.model_copy(update={"strategy": CommandLine(argv=("/bin/deploy", "{ref}"))})
    alone = Seen("decode@gpu1", None, VersionSeen(text="v2", source="url"))
    assert (prove_version(entry, alone, "v2", "v2").verdict, prove_version(entry, alone, "v2", "v2").rung) == (
        "live",
        "reported",
    )


@pytest.mark.parametrize("ref", ["v1", "2026-11-30", "vllm/vllm-openai:v0.9", "img@sha256:0abc", "a+b~c", "A" * 200])
def test_a_ref_is_one_word(ref: str) -> None:
    assert sound_ref(ref)


@pytest.mark.parametrize(
    "ref", ["", "-v", "/v", "v/", "a//b", "a/../b", "..", ".v", "a b", "a\n", "é", "a;b", "A" * 201]
)
def test_what_leads_elsewhere_or_is_an_option_is_no_ref(ref: str) -> None:
    assert not sound_ref(ref)
