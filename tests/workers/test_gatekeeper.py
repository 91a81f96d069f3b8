"""The gatekeeper against hosts whose answers are scripted: deadlines, lives that end, children that are just made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from policies.errors import HostUnreachable, OpsError
from policies.facts import HttpAnswer, Incarnation, PortOwner, ProcessEnv, UnitFacts
from policies.fleet import Fleet, Host, HttpCheck, Service, Timing
from policies.plan import RestartStep
from tests.policies.builders import unit
from workers import gatekeeper
from workers.aims import Aim
from workers.executors.answers import HttpAsk, LogAsk, Since, Waited
from workers.gate_answers import Answer
from workers.gatekeeper import Gatekeeper
from workers.hosts import Hosts, Seen
from workers.issued import Issued

OLD = Incarnation(main_pid=10, started=100, invocation_id="a")
NEW = Incarnation(main_pid=20, started=200, invocation_id="b")
THIRD = Incarnation(main_pid=30, started=300, invocation_id="c")
BOOT_S = 100.0
ISSUED_AT = 1000.0


def waited(state: str, life: Incarnation = NEW, *, at: float = ISSUED_AT, restarts: int = 0, pid: int = 20) -> Waited:
    ready = state == "ready"
    return Waited.model_validate(
        {
            "unit": "decode.service",
            "state": state,
            "incarnation": life,
            "active_state": "active",
            "sub_state": "running",
            "result": "success",
            "n_restarts": restarts,
            "n_restarts_shown": restarts,
            "exec_main_status": 0,
            "port": PortOwner(port=1, state="owned", pid=pid, in_unit=True, started=life.started),
            "health": HttpAnswer(id="health", url="http://h", status=200, at=at, took_s=0.1) if ready else None,
            "since": Since(
                new_incarnation_at=None if life == OLD else at,
                port_owned_at=at,
                first_200_at=at,
                ready_at=at if ready else None,
            ),
            "at": at,
        }
    )


class ScriptedHost:
    """Answers `wait` from a list and keeps what was asked."""

    def __init__(self, answers: Sequence[Waited | OpsError]) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, object]] = []

    def wait(self, unit: str, **asked: object) -> Waited:
        self.asked.append(asked)
        answer = self.answers.pop(0)
        if isinstance(answer, OpsError):
            raise answer
        return answer


class ScriptedHosts(Hosts):
    """One scripted host; `observe` gives facts from a list, the last one for ever."""

    def __init__(self, host: ScriptedHost, facts: Sequence[UnitFacts] = ()) -> None:
        self.host = host
        self.facts = list(facts)

    def at(self, host: str) -> ScriptedHost:  # type: ignore[override]  # only `wait` is asked of it
        return self.host

    def observe(
        self,
        instances: Sequence[str],
        variables: Sequence[str],
        probes: Mapping[str, Sequence[HttpAsk]] | None = None,
        log: LogAsk | None = None,
        *,
        context: bool = False,
    ) -> Seen:
        seen = self.facts.pop(0) if len(self.facts) > 1 else self.facts[0]
        return Seen({"decode@gpu1": seen}, {})


def fleet() -> Fleet:
    health = HttpCheck(url="http://127.0.0.1:1/health", boot_s=BOOT_S)
    service = Service(name="decode", on=("gpu1",), unit="decode.service", health=health)
    host = Host(name="gpu1", address="127.0.0.1", user="u")
    return Fleet.model_validate(
        {
            "name": "f",
            "hosts": {"gpu1": host},
            "services": {"decode": service},
            "restarts": {"decode-only": ("decode",)},
            "knobs": {},
            "timing": Timing(),
            "sha256": "0" * 64,
        }
    )


STEP = RestartStep(
    host="gpu1",
    service="decode",
    unit="decode.service",
    argv=(),
    before=OLD,
    changed=True,
    gates=("incarnation", "port", "health"),
)
AIM = Aim("KNOB", "512", None)


def ask(hosts: ScriptedHosts, issued: Issued, step: RestartStep = STEP) -> list[Answer]:
    return list(Gatekeeper(fleet(), hosts, lambda: None).ask(step, issued, AIM, ("decode",)))


def said(answers: Sequence[Answer]) -> list[tuple[str, str, str]]:
    return [(a.gate, a.verdict.answer, a.verdict.findings[0].code) for a in answers]


ISSUED = Issued(before=OLD, at=ISSUED_AT)


def test_after_a_takeover_the_boot_time_counts_from_the_issue_by_the_hosts_clock() -> None:
    host = ScriptedHost([waited("waiting", at=ISSUED_AT + BOOT_S + 1)])
    answers = ask(ScriptedHosts(host), Issued(before=OLD, at=ISSUED_AT, taken_over=True))
    assert said(answers)[-1] == ("health", "inconclusive", "gate.health.not-asked")
    assert [asked["for_s"] for asked in host.asked] == [gatekeeper.SHORT_SLICE_S]


LATE = Issued(before=OLD, at=ISSUED_AT, late=True)


def test_a_gate_that_is_asked_late_fails_neither_early_nor_gets_more_time_than_its_own_boot() -> None:
    host = ScriptedHost([waited("waiting", at=ISSUED_AT + BOOT_S + 1)])
    assert said(ask(ScriptedHosts(host), LATE))[-1] == ("health", "inconclusive", "gate.health.not-asked")
    assert [asked["for_s"] for asked in host.asked] == [gatekeeper.SHORT_SLICE_S]
    host = ScriptedHost([waited("ready", at=ISSUED_AT + BOOT_S + 1)])
    assert {a.verdict.answer for a in ask(ScriptedHosts(host), LATE)} == {"pass"}


def test_a_boot_that_was_over_before_anybody_looked_is_not_a_measured_one() -> None:
    over = ScriptedHost([waited("ready", at=ISSUED_AT + 70)])
    assert {a.waited_s for a in ask(ScriptedHosts(over), LATE)} == {None}
    seen = ScriptedHost([waited("waiting", at=ISSUED_AT + 60), waited("ready", at=ISSUED_AT + 70)])
    assert {a.waited_s for a in ask(ScriptedHosts(seen), LATE)} == {70.0}


def test_a_retry_by_hand_has_the_whole_boot_time_again_and_is_no_measured_boot() -> None:
    late = ISSUED_AT + 100 * BOOT_S
    host = ScriptedHost([waited("waiting", at=late, restarts=7), waited("ready", at=late + 1, restarts=7)])
    answers = ask(ScriptedHosts(host), Issued(before=OLD, at=ISSUED_AT, by_hand=True))
    assert [a.gate for a in answers] == ["incarnation", "port", "health"]
    assert {a.verdict.answer for a in answers} == {"pass"}
    assert {a.waited_s for a in answers} == {None}


def test_a_life_that_an_earlier_slice_saw_is_expected_in_the_next_one() -> None:
    host = ScriptedHost([waited("waiting"), waited("other-incarnation", THIRD)])
    answers = ask(ScriptedHosts(host), ISSUED)
    assert said(answers) == [("incarnation", "fail", "gate.incarnation.other")]
    assert [asked["expect"] for asked in host.asked] == [None, NEW]


def test_a_life_that_systemd_itself_started_is_not_somebody_elses() -> None:
    host = ScriptedHost(
        [waited("waiting"), waited("other-incarnation", THIRD, restarts=1), waited("ready", THIRD, restarts=1)]
    )
    answers = ask(ScriptedHosts(host), ISSUED)
    assert [a.verdict.answer for a in answers] == ["pass", "pass", "pass"]
    assert answers[0].incarnation == THIRD


def test_restarts_that_the_old_life_counted_are_no_crash_loop_of_the_new_one() -> None:
    host = ScriptedHost([waited("waiting", OLD, restarts=9), waited("ready", restarts=0)])
    assert [a.verdict.answer for a in ask(ScriptedHosts(host), ISSUED)] == ["pass", "pass", "pass"]


def test_automatic_restarts_that_a_dead_unit_had_before_are_not_counted_against_its_new_life() -> None:
    # systemd goes on counting when a unit that waits for its automatic restart is restarted by us
    host = ScriptedHost([waited("waiting", OLD, restarts=9), waited("ready", restarts=9)])
    answers = ask(ScriptedHosts(host), Issued(before=OLD, at=ISSUED_AT, unwell=True))
    assert [a.verdict.answer for a in answers] == ["pass", "pass", "pass"]
    assert host.asked[0]["for_s"] == gatekeeper.SHORT_SLICE_S


def test_a_dead_unit_that_crashes_three_times_more_is_a_crash_loop() -> None:
    host = ScriptedHost([waited("waiting", restarts=9), waited("waiting", restarts=12)])
    answers = ask(ScriptedHosts(host), Issued(before=OLD, at=ISSUED_AT, unwell=True))
    assert said(answers) == [("incarnation", "fail", "gate.incarnation.crash-loop")]
    assert answers[0].verdict.findings[0].values["restarts"] == 3


def test_one_more_automatic_start_in_the_moment_of_the_restart_is_forgiven_once() -> None:
    unwell = Issued(before=OLD, at=ISSUED_AT, unwell=True)
    once = ScriptedHost([waited("other-incarnation", THIRD), waited("ready", THIRD)])
    assert [a.verdict.answer for a in ask(ScriptedHosts(once), unwell)] == ["pass", "pass", "pass"]
    twice = ScriptedHost([waited("other-incarnation", THIRD), waited("other-incarnation", NEW)])
    assert said(ask(ScriptedHosts(twice), unwell)) == [("incarnation", "fail", "gate.incarnation.other")]


def test_a_life_that_passed_before_a_takeover_and_is_another_now_is_said_although_its_gate_has_passed() -> None:
    issued = Issued(before=OLD, at=ISSUED_AT, passed=frozenset({"incarnation", "port"}), life=NEW, taken_over=True)
    host = ScriptedHost([waited("other-incarnation", THIRD)])
    assert said(ask(ScriptedHosts(host), issued)) == [("incarnation", "fail", "gate.incarnation.other")]


def test_gates_that_passed_before_a_takeover_are_not_said_again() -> None:
    issued = Issued(before=OLD, at=ISSUED_AT, passed=frozenset({"incarnation", "port"}), life=NEW, taken_over=True)
    assert said(ask(ScriptedHosts(ScriptedHost([waited("ready")])), issued)) == [("health", "pass", "gate.health.ok")]


def test_a_host_that_cannot_be_asked_for_a_moment_is_asked_again() -> None:
    host = ScriptedHost([HostUnreachable("away"), waited("ready")])
    assert [a.verdict.answer for a in ask(ScriptedHosts(host), ISSUED)] == ["pass", "pass", "pass"]


def test_an_answer_that_is_none_is_an_error_of_the_gate_and_never_a_pass() -> None:
    host = ScriptedHost([OpsError("no valid answer")])
    assert said(ask(ScriptedHosts(host), ISSUED)) == [("incarnation", "error", "gate.host-not-answering")]


def facts(child: str | None, life: Incarnation = NEW, restarts: int = 0) -> UnitFacts:
    def one(pid: int, *, main: bool, value: str | None) -> ProcessEnv:
        answer = "absent" if value is None else "present"
        return ProcessEnv.model_validate(
            {"pid": pid, "name": "p", "main": main, "variable": "KNOB", "answer": answer, "value": value}
        )

    processes = (one(20, main=True, value="512"), one(21, main=False, value=child))
    return unit().model_copy(update={"incarnation": life, "processes": processes, "n_restarts": restarts})


VALUE_STEP = STEP.model_copy(update={"gates": (*STEP.gates, "environment")})


def _still(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    pauses: list[float] = []
    monkeypatch.setattr("workers.gatekeeper.time.sleep", pauses.append)
    return lambda: len(pauses)


def test_a_child_that_has_just_been_made_is_looked_at_again_before_it_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = _still(monkeypatch)
    hosts = ScriptedHosts(ScriptedHost([waited("ready")]), [facts(None), facts("512")])
    assert said(ask(hosts, ISSUED, VALUE_STEP))[-1] == ("environment", "pass", "gate.environment.live")
    assert pauses() == 1


def test_a_child_that_never_gets_the_value_is_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = _still(monkeypatch)
    hosts = ScriptedHosts(ScriptedHost([waited("ready")]), [facts(None)])
    assert said(ask(hosts, ISSUED, VALUE_STEP))[-1] == ("environment", "fail", "gate.environment.mixed")
    assert pauses() == gatekeeper.PROOF_TRIES - 1


@pytest.mark.parametrize(
    ("life", "restarts", "code"),
    [
        (THIRD, 0, "gate.incarnation.other"),
        (THIRD, 1, "gate.incarnation.crash-loop"),
        (Incarnation(main_pid=0, started=0, invocation_id="b"), 0, "gate.incarnation.no-process"),
    ],
)
def test_a_life_that_ended_after_it_was_well_is_told_apart_from_a_restart_by_hand(
    life: Incarnation, restarts: int, code: str
) -> None:
    hosts = ScriptedHosts(ScriptedHost([waited("ready")]), [facts("512", life, restarts)])
    assert said(ask(hosts, ISSUED, VALUE_STEP))[-1] == ("incarnation", "fail", code)
