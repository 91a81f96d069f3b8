"""Drains and registrations at the real router, with requests in flight, deadlines, successors and stale tokens."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policies import events as e
from policies.errors import HostRefused, HostUnreachable
from policies.intents import Actor
from policies.plan import AdmitStep, DrainStep, Plan
from policies.routers.listed import Taken
from tests.real.drain_room import Room, Turn
from tests.real.router_server import RealRouter, SmallEngine, until
from tests.workers.lab_host import lab_host
from workers import enlisting
from workers.acts import Acts, Undecided
from workers.admitting import admitted_now
from workers.enlisting import NotDone
from workers.executors.routers import remove_worker
from workers.foreseeing import at_routers
from workers.proving import look

pytestmark = pytest.mark.real
BOOTSTRAP = 9001


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    """One prefill and two decodes."""
    engines = {"prefill": SmallEngine("prefill"), "decode": SmallEngine("decode"), "other": SmallEngine("decode")}
    words = ["--pd-disaggregation", "--policy", "round_robin", "--prefill", engines["prefill"].url, str(BOOTSTRAP)]
    words += ["--decode", engines["decode"].url, "--decode", engines["other"].url]
    router = RealRouter(tmp_path_factory.mktemp("router") / "log", *words)
    try:
        with lab_host() as lab:
            kinds = {"prefill": "prefill", "decode": "decode", "other": "decode"}
            yield Room(lab, router, engines, kinds, {"prefill": BOOTSTRAP})
    finally:
        router.stop()
        for engine in engines.values():
            engine.stop()


@pytest.fixture(autouse=True)
def _fresh(room: Room) -> None:
    room.fresh()


def codes(done: e.StepDone) -> list[str]:
    return [finding.code for finding in done.findings]


def test_requests_in_flight_end_well_while_a_drain_waits_for_them_and_new_ones_go_elsewhere(room: Room) -> None:
    decode, other = room.engines["decode"], room.engines["other"]
    answers = room.router.in_background(6, hold=True)
    until(lambda: decode.running + other.running == 6, "the requests do not arrive")
    held = decode.running
    assert held > 0
    found: list[e.StepDone] = []
    drain = threading.Thread(target=lambda: found.append(room.worker().do(room.drain("decode"), "do", 0)))
    drain.start()
    until(lambda: not room.listed("decode"), "it is not taken out")
    for engine in room.engines.values():
        engine.release.set()
    for _ in range(4):
        assert room.router.generate()[0] == 200
    drain.join(30.0)
    assert codes(found[0]) == ["drain.empty"]
    assert (len(decode.seen), decode.cut) == (held, 0)  # nothing new, nothing cut
    until(lambda: len(answers) == 6, "an answer is lost")
    assert {status for status, _ in answers} == {200}
    taken = found[0].found[0].found
    assert taken is not None
    assert (taken.url, taken.kind, taken.healthy) == (decode.url, "decode", True)


def test_an_instance_is_given_back_as_the_router_knew_it_and_admitted_at_once(room: Room) -> None:
    room.router.ask("DELETE", f"/workers/{room.listed('prefill')[0]['id']}")
    spelled = room.engines["prefill"].url + "/"
    asked = {"url": spelled, "worker_type": "prefill", "bootstrap_port": 9333, "priority": 70, "labels": {"rack": "7"}}
    room.router.ask("POST", "/workers", asked)
    until(lambda: bool(room.listed("prefill")), "it is not registered")
    done = room.worker().do(room.drain("prefill"), "do", 0)
    room.tell(done)
    assert codes(done) == ["drain.empty", "drain.as-found"]
    assert done.findings[1].values["differs"] == (
        f"url {spelled} instead of {room.engines['prefill'].url}; bootstrap port 9333 instead of {BOOTSTRAP}"
    )
    room.tell(room.worker().do(room.admit("prefill"), "do", 1))
    (answer,) = room.gates().ask_admit(room.admit("prefill"), room.entries)
    assert (answer.verdict.answer, answer.verdict.findings[0].code) == ("pass", "gate.admitted.ok")
    (back,) = room.listed("prefill")
    assert (back["url"], back["bootstrap_port"], back["priority"]) == (spelled, 9333, 70)
    assert json.dumps(back["metadata"]).count("rack") == 1
    assert room.router.generate()[0] == 200
    assert room.engines["prefill"].seen[-1]["bootstrap_port"] == 9333
    room.router.ask("DELETE", f"/workers/{back['id']}")


def test_what_is_left_at_the_deadline_holds_or_is_said_to_be_cut_and_how_many_there_are(room: Room) -> None:
    decode = room.engines["decode"]
    room.router.in_background(4, hold=True)
    until(lambda: decode.running > 0 and decode.running + room.engines["other"].running == 4, "they do not arrive")
    with pytest.raises(NotDone) as held:
        room.worker().do(room.drain("decode", deadline_s=0.0), "do", 0)
    finding = held.value.findings[0]
    assert (finding.code, finding.values["left"]) == ("hold.drain-over", decode.running)
    assert not room.listed("decode")  # it stays out until somebody decides
    goes_on: tuple[tuple[e.Part, str], ...] = (("do", "restart"), ("undo", "hold"))  # an undo brings back what failed
    for part, over in goes_on:
        done = room.worker().do(room.drain("decode", deadline_s=0.0, over=over), part, 0)
        assert (codes(done)[0], done.findings[0].values["left"]) == ("drain.cuts", decode.running)
    assert decode.cut == 0


def test_an_abort_does_not_wait_for_what_is_in_flight(room: Room) -> None:
    decode = room.engines["decode"]
    room.router.in_background(4, hold=True)
    until(lambda: decode.running > 0 and decode.running + room.engines["other"].running == 4, "they do not arrive")
    running = decode.running
    room.tell(e.AbortAsked(actor=Actor(id="U02BEN")))
    done = room.worker().do(room.drain("decode", deadline_s=30.0), "do", 0)
    assert (codes(done), decode.running) == (["drain.aborted"], running)
    assert not room.listed("decode")  # its undo gives it back


def test_an_instance_that_is_listed_again_behind_its_drain_is_not_restarted_before_it_is_drained_anew(
    room: Room,
) -> None:
    worker, drain = room.worker(), room.drain("decode")
    room.tell(worker.do(drain, "do", 0))
    worker.still_out(drain, "do", 0)
    room.router.ask("POST", "/workers", room.registration("decode"))
    until(lambda: bool(room.listed("decode")), "it is not listed")
    with pytest.raises(NotDone) as held:
        worker.still_out(drain, "do", 0)
    assert (held.value.findings[0].code, bool(room.listed("decode"))) == ("hold.registered-again", True)
    room.tell(e.RetryAsked(actor=Actor(id="U02BEN")))
    worker.still_out(drain, "do", 0)
    assert not room.listed("decode")


def test_an_undo_that_finds_it_listed_again_does_not_say_that_it_was_out_all_the_time(room: Room) -> None:
    room.tell(room.worker().do(room.drain("decode"), "do", 0))
    assert codes(room.worker().do(room.drain("decode"), "undo", 0)) == ["drain.still-out"]
    room.router.ask("POST", "/workers", room.registration("decode"))
    until(lambda: bool(room.listed("decode")), "it is not listed")
    assert codes(room.worker().do(room.drain("decode"), "undo", 0)) == ["drain.empty"]


def test_an_engine_that_tells_nothing_is_never_called_empty(room: Room) -> None:
    decode = room.engines["decode"]
    decode.kind = ""  # it does not say what it is, and its queues are not there
    fleet = room.fleet
    try:
        services = {**fleet.services, "decode": fleet.services["decode"].model_copy(update={"metrics": None})}
        room.hosts._fleet = fleet.model_copy(update={"services": services})
        worker = room.worker()
        worker._list.routers._fleet = room.hosts._fleet
        with pytest.raises(NotDone) as held:
            worker.do(room.drain("decode", deadline_s=0.0), "do", 0)
    finally:
        decode.kind = "decode"
        room.hosts._fleet = fleet
    finding, beside = held.value.findings
    assert (finding.code, finding.values["left"]) == ("hold.drain-unknown", None)
    assert (beside.code, beside.values["unknown"]) == ("drain.unread", "metrics")


def test_a_dead_instance_is_empty(room: Room) -> None:
    decode = room.engines["decode"]
    room.lab.manager.systemctl("stop", "decode.service")
    decode.silent = True
    try:
        done = room.worker().do(room.drain("decode"), "do", 0)
    finally:
        decode.silent = False
        room.lab.manager.systemctl("start", "decode.service")
    assert codes(done) == ["drain.no-process"]


class Killed(BaseException):
    """The worker's end."""


def dies(*words: Any) -> None:
    """Its last act."""
    remove_worker(*words)
    raise Killed


def test_a_successor_of_a_worker_that_died_behind_the_removal_still_knows_what_to_register(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enlisting, "remove_worker", dies)
    with pytest.raises(Killed):
        room.worker(token=5, first=5).do(room.drain("decode"), "do", 0)
    monkeypatch.undo()
    until(lambda: not room.listed("decode"), "it is not taken out")
    successor = room.worker(token=6, first=5)
    done = successor.do(room.drain("decode"), "do", 0)
    assert (codes(done), done.found[0].found is not None) == (["drain.empty"], True)
    room.tell(done)
    room.tell(successor.do(room.admit("decode"), "do", 1))
    assert len(room.listed("decode")) == 1
    again = room.worker(token=7, first=5).do(room.admit("decode"), "do", 1)  # its answer was not recorded
    assert (codes(again), len(room.listed("decode"))) == ([], 1)


def test_a_drain_that_was_only_begun_is_given_back_by_an_undo(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enlisting, "remove_worker", dies)
    with pytest.raises(Killed):
        room.worker(token=5, first=5).do(room.drain("prefill"), "do", 0)
    monkeypatch.undo()
    room.worker(token=6, first=5).do(room.admit("prefill"), "undo", 0)
    (back,) = room.listed("prefill")
    assert back["bootstrap_port"] == BOOTSTRAP


def test_another_change_of_the_same_name_took_it_out_under_lower_tokens_and_is_not_believed(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enlisting, "remove_worker", dies)
    with pytest.raises(Killed):
        room.worker(token=5, first=5).do(room.drain("decode"), "do", 0)
    monkeypatch.undo()
    done = room.worker(token=9, first=9).do(room.drain("decode"), "do", 0)
    assert (codes(done), done.found[0].found) == (["drain.empty", "drain.never-was"], None)
    room.tell(done)
    admitted = room.worker(token=9, first=9).do(room.admit("decode"), "do", 1)
    room.tell(admitted)
    assert (codes(admitted), room.listed("decode")) == (["admit.never-was"], [])
    (answer,) = room.gates().ask_admit(room.admit("decode"), room.entries)
    assert answer.verdict.findings[0].code == "gate.admitted.never-was"


def test_a_worker_that_woke_up_with_an_old_token_takes_nothing_out_and_registers_nothing(room: Room) -> None:
    room.worker(token=8, first=5).fence(room.drain("decode"))
    for step in (room.drain("decode"), room.admit("decode")):
        if step.kind == "admit":
            room.router.ask("DELETE", f"/workers/{room.listed('decode')[0]['id']}")
            until(lambda: not room.listed("decode"), "it is not taken out")
        with pytest.raises(HostRefused) as refused:
            room.worker(token=7, first=5).do(step, "do", 0)
        assert refused.value.code == "stale-token"
        assert len(room.listed("decode")) == (1 if step.kind == "drain" else 0)


def test_a_router_that_restarted_knows_its_command_line_and_an_admit_asks_it_first(room: Room) -> None:
    room.taken_out("decode")
    room.router.restart()
    room.router.serve(list(room.engines.values()))
    done = room.worker().do(room.admit("decode"), "do", 1)
    assert (codes(done), len(room.listed("decode"))) == ([], 1)


def test_an_engine_that_does_not_answer_at_its_registration_is_asked_for_again_until_it_does(room: Room) -> None:
    room.taken_out("decode")
    room.engines["decode"].health = 503
    begun = time.monotonic()
    well = threading.Timer(1.5, lambda: setattr(room.engines["decode"], "health", 200))
    well.start()
    room.worker().do(room.admit("decode"), "do", 1)
    well.join()
    assert room.listed("decode")
    assert time.monotonic() - begun < 30.0


def test_an_open_breaker_is_no_admission(room: Room, tmp_path: Path) -> None:
    engine = room.engines["decode"]
    router = RealRouter(
        tmp_path / "log", "--worker-urls", engine.url, "--cb-failure-threshold", "2", "--disable-retries"
    )
    try:
        router.serve([engine])
        engine.fails = True
        for _ in range(3):
            router.generate()
        services = dict(room.fleet.services)
        services["router"] = services["router"].model_copy(
            update={"metrics": services["router"].metrics.model_copy(update={"url": router.metrics_url})}  # type: ignore[union-attr]  # it has some
        )
        fleet = room.fleet.model_copy(update={"services": services})
        at = room.at("decode", api=router.url, kind="regular")
        verdict = admitted_now(fleet, room.hosts, "decode@gpu1", at)
        assert (verdict.answer, verdict.findings[0].code) == ("fail", "gate.admitted.breaker")
        assert router.workers()[0]["is_healthy"] is True
    finally:
        engine.fails = False
        router.stop()


def test_what_a_drain_will_meet_at_the_router_is_asked_when_it_is_planned(room: Room) -> None:
    def found(service: str, **more: str) -> list[tuple[str, str]]:
        plan = planned(room.drain(service, 20.0, "hold", **more))
        return [(one.code, one.effect) for one in at_routers(room.fleet, room.hosts, [plan, plan])]

    assert found("decode") == []
    assert found("prefill") == [("plan.last-worker", "warn")]
    assert found("decode", worker="http://127.0.0.1:1") == [("plan.not-registered", "warn")]
    assert found("decode", kind="regular") == [("plan.as-registered", "note")]


def planned(*steps: DrainStep | AdmitStep) -> Plan:
    nothing = dict.fromkeys(("targets", "undo", "files", "incarnations", "policy"), ())
    fields = {"order": "decode", "fleet_sha256": "0" * 64, "knob": None, "value": None, "steps": steps}
    return Plan.model_validate({**fields, **nothing})


def test_the_last_proof_of_a_change_asks_the_routers_of_what_was_drained(room: Room) -> None:
    plan = planned(room.drain("decode"), room.admit("decode"))
    assert plan.leased == ("decode@gpu1", "router@gpu1")

    def proof() -> tuple[list[str], list[str]]:
        proved, against = look(room.fleet, room.hosts, plan, room.entries)
        return [finding.code for finding in proved.findings], [finding.code for finding in against]

    assert proof() == (["proof.healthy", "gate.admitted.ok"], [])
    room.taken_out("decode")
    assert proof()[1] == ["gate.admitted.not-registered"]
    absent = room.entries[0].event.model_copy(
        update={"found": (Taken(router="router@gpu1", worker=room.engines["decode"].url, found=None),)}
    )
    room.entries.clear()
    room.tell(absent)  # it was not registered before the drain either
    assert proof() == (["proof.healthy", "gate.admitted.never-was"], [])


def test_a_successor_has_what_is_left_of_the_deadline_and_a_person_who_asks_again_gives_it_anew(room: Room) -> None:
    room.tell(e.StepStarted(part="do", index=0, step="drain", instance="decode@gpu1"))
    with pytest.raises(NotDone):
        room.worker().do(room.drain("decode", deadline_s=0.0), "do", 0)
    at, successor = room.at("decode")[0], room.worker(token=2)._list
    now = time.time() + 50.0
    assert 45.0 < successor.out_for_s(at, "do-0", now) < 55.0
    assert successor.out_for_s(at, "do-1", now) == 0.0
    assert successor.out_for_s(room.at("other")[0], "do-0", now) == 0.0
    room.tell(e.RetryAsked(actor=Actor(id="U1", roles=())))
    assert successor.out_for_s(at, "do-0", now) == 0.0


def test_a_host_of_a_router_that_cannot_be_reached_is_the_one_that_is_named(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise HostUnreachable("host 'gpu9' cannot be reached", hint="")

    monkeypatch.setattr("workers.acts.ASK_AGAIN_S", (0.0, 0.0))
    monkeypatch.setattr("workers.drains.Drains.do", away)
    lease = Turn(dict.fromkeys(("decode@gpu1", "router@gpu1"), 1))
    acts = Acts(room.hosts, lease, "C-1", lease.tokens, lambda _: None, room.worker())  # type: ignore[arg-type]  # as much of a lease as it needs
    with pytest.raises(Undecided) as held:
        acts.do(room.drain("decode"), "do", 0, again=False)
    (finding,) = held.value.findings
    assert (finding.code, finding.values["error"]) == ("hold.router-unreached", "host 'gpu9' cannot be reached")
