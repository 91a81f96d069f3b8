"""Asks the gates of one step. Waiting happens on the host; the verdicts are made by `policies.gates`."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace

from policies.ending import with_end
from policies.errors import HostAnswerLost, HostKeyRefused, HostUnreachable, OpsError
from policies.events import Entry
from policies.facts import UnitFacts
from policies.finding import Finding, Verdict
from policies.fleet import Fleet, Service
from policies.gates import contract, environment, health, incarnation, port, reported, version
from policies.plan import AdmitStep, Agreement, GateKind, RestartStep, VersionAim
from workers.admitting import ADMIT_S, admitted
from workers.aims import Aim, prove
from workers.executors.answers import Failure, Waited
from workers.gate_answers import Answer, ended_since, not_asked
from workers.generations import Generations
from workers.hosts import Hosts
from workers.issued import Issued
from workers.routers import Routers
from workers.trouble import about_host
from workers.versions import Versions

RETRY_PAUSE_S = 0.2
SHORT_SLICE_S = 0.1
PROOF_TRIES = 6


class Gatekeeper:
    """Gates of restarts. `check` is called between slices and raises when the work must stop (lease)."""

    def __init__(self, fleet: Fleet, hosts: Hosts, check: Callable[[], None]) -> None:
        self._fleet = fleet
        self._hosts = hosts
        self._check = check
        self._versions = Versions(fleet, hosts)
        self._routers = Routers(fleet, hosts)
        self.generations = Generations(fleet, hosts, check)

    def ask(
        self,
        step: RestartStep,
        issued: Issued,
        aim: Aim | None,
        touched: Sequence[str],
        wanted: VersionAim | None = None,
        agreed: Sequence[tuple[Agreement, str]] = (),
    ) -> Iterator[Answer]:
        """Answers of the step's gates that have not passed yet, in order; stops after the first that does not pass.

        touched: instances (service@host) that were restarted until now; canaries that go through one of them are asked.
        wanted: the version. agreed: what contracts want reported, each with the value.
        A gate that passed before and does not hold any more is answered again.
        """
        life: Answer | None = None
        for answer in self._life(step, issued):
            life = life or answer
            if answer.verdict.answer != "pass":
                yield answer
                return
            if answer.gate in step.gates and answer.gate not in issued.passed:
                yield answer
        path = self.generations.behind(step, touched)
        value, read_back = self._value(step, aim, life), self._version(step, wanted, life)
        for answers in (value, read_back, self._contract(step, agreed), path):
            for answer in answers:
                if answer.verdict.answer == "pass" and answer.gate in issued.passed:
                    continue
                yield answer
                if answer.verdict.answer != "pass":
                    return

    def ask_admit(self, step: AdmitStep, entries: Iterable[Entry], touched: Sequence[str] = ()) -> Iterator[Answer]:
        """Whether every router sends the instance requests again; where the step says so, canaries behind that.

        Asked again until they do or the time is over that a router needs for its own health checks. entries: of the
        change. touched: instances (service@host) so far.
        """
        begun, told = time.monotonic(), tuple(entries)
        while True:
            self._check()
            waited_s = time.monotonic() - begun
            verdict = admitted(self._routers, step, told, waited_s)
            if verdict.answer == "pass" or waited_s >= ADMIT_S:
                yield Answer("admitted", verdict, waited_s=waited_s)
                break
            time.sleep(RETRY_PAUSE_S)
        if verdict.answer == "pass":
            for answer in self.generations.behind(step, touched):
                yield answer
                if answer.verdict.answer != "pass":
                    return

    def _life(self, step: RestartStep, issued: Issued) -> Iterator[Answer]:
        instance = f"{step.service}@{step.host}"
        service = self._fleet.at(instance)
        begun = time.monotonic()
        waited, was_ready = self._wait(step, service, issued)
        if isinstance(waited, Finding):
            yield Answer("incarnation", Verdict(answer="error", findings=(waited,)))
            return
        ready_at = waited.since.ready_at
        waited_s = time.monotonic() - begun if issued.by_hand else (ready_at or waited.at) - issued.at
        # a first look that comes late sees no boot, and a repair by hand is none: neither may become an estimate
        boot_s = None if issued.by_hand or issued.taken_over or was_ready else waited_s
        ended = waited.ended
        life = incarnation.judge(
            instance,
            issued.before,
            waited.incarnation,
            active_state=waited.active_state,
            sub_state=waited.sub_state,
            result=waited.result,
            n_restarts=waited.n_restarts,
            waited_s=waited_s,
            other=waited.state == "other-incarnation",
            first=ended.result,
        )
        if life.answer != "pass" and waited.state != "other-incarnation":
            life = with_end(life, instance, ended.result, ended.code, ended.status, waited.n_restarts)
        owner = port.judge(instance, waited.port, waited.incarnation, waited_s=waited_s)
        if life.answer != "pass" and waited.state != "other-incarnation" and port.taken(waited.port):
            # the unit ends because somebody else has its port: that is what a person has to hear first
            found = Verdict(answer="fail", findings=(*owner.findings, *life.findings))
            yield Answer("port", found, waited.incarnation)
            return
        began_at = waited.since.new_incarnation_at
        yield Answer("incarnation", life, waited.incarnation, boot_s, began_at, waited.n_restarts_shown)
        yield Answer("port", owner, waited.incarnation, boot_s, waited.since.port_owned_at)
        well = health.judge(instance, waited.health, confirmed=waited.state == "ready", waited_s=waited_s)
        yield Answer("health", well, waited.incarnation, boot_s, ready_at)

    def _wait(self, step: RestartStep, service: Service, issued: Issued) -> tuple[Waited | Finding, bool]:
        """Long polls on the host until it is ready, has failed, or the boot time is over.

        True beside it: the first look came late and found it ready, so when it got ready is not known.
        """
        timing, boot_s = self._fleet.timing, service.health.boot_s
        deadline = time.monotonic() + boot_s
        life, restarts = issued.life, issued.restarts
        uncounted: int | None = None if issued.by_hand or issued.unwell else 0
        forgiven = not issued.unwell
        # only the host's clock knows how much is left of a boot that began earlier, so the first look is a short one
        slice_s = SHORT_SLICE_S if issued.taken_over or issued.unwell or issued.late else timing.wait_slice_s
        was_ready = issued.late
        host = self._hosts.at(step.host)
        first: Failure | None = None
        while True:
            self._check()
            left_s = deadline - time.monotonic()
            try:
                waited = host.wait(
                    step.unit,
                    before=issued.before,
                    port=service.health.port,
                    health=service.health,
                    confirmations=timing.health_confirmations,
                    poll_s=timing.poll_s,
                    for_s=max(SHORT_SLICE_S, min(slice_s, left_s)),
                    expect=life,
                )
            except HostKeyRefused as error:
                return not_asked(step.host, error), False
            except (HostUnreachable, HostAnswerLost) as error:
                # Looking changes nothing, so looking again is safe; the boot goes on meanwhile.
                if time.monotonic() >= deadline:
                    return not_asked(step.host, error), False
                time.sleep(RETRY_PAUSE_S)
                continue
            except OpsError as error:
                if not about_host(error):
                    raise
                return not_asked(step.host, error), False
            slice_s = timing.wait_slice_s
            first = first or waited.failed
            started_again = (waited.n_restarts or 0) > restarts
            restarts = waited.n_restarts or 0
            if waited.state == "other-incarnation" and (started_again or not forgiven) and time.monotonic() < deadline:
                life, forgiven = None, forgiven or not started_again  # systemd itself started it again
                continue
            if waited.since.new_incarnation_at is not None and waited.incarnation.main_pid != 0:
                life = waited.incarnation
            uncounted = restarts if uncounted is None else uncounted if restarts >= uncounted else 0
            waited = waited.model_copy(update={"n_restarts": max(0, restarts - uncounted), "failed": first})
            looping = incarnation.crash_loop(issued.before, waited.incarnation, waited.n_restarts)
            if waited.state not in {"waiting", "foreign-port-owner"} or looping:
                return waited, was_ready
            was_ready = False
            if not issued.by_hand:
                deadline = min(deadline, time.monotonic() + issued.at + boot_s - waited.at)
            if time.monotonic() >= deadline:
                return waited, False

    def _value(self, step: RestartStep, aim: Aim | None, life: Answer | None) -> Iterator[Answer]:
        if "environment" not in step.gates or aim is None:
            return
        instance = f"{step.service}@{step.host}"

        def look() -> tuple[UnitFacts, Verdict]:
            facts = self._hosts.observe([instance], [aim.variable]).units[instance]
            return facts, environment.judge(prove(facts, replace(aim, reported_path=None)))

        facts = yield from self._tried("environment", step, life, look)
        if facts is not None and aim.reported_path is not None:
            info = next((a for a in facts.http if a.id == "server_info"), None)
            verdict = reported.judge(instance, info, aim.reported_path, aim.wanted)
            yield Answer("reported", verdict, facts.incarnation)

    def _contract(self, step: RestartStep, agreed: Sequence[tuple[Agreement, str]]) -> Iterator[Answer]:
        if "contract" not in step.gates or not agreed:
            return
        instance = f"{step.service}@{step.host}"

        def look() -> tuple[UnitFacts, Verdict]:
            facts = self._hosts.observe([instance], []).units[instance]
            info = next((a for a in facts.http if a.id == "server_info"), None)
            return facts, contract.all_of([contract.judge(one, info, value) for one, value in agreed])

        yield from self._tried("contract", step, None, look)

    def _version(self, step: RestartStep, wanted: VersionAim | None, life: Answer | None) -> Iterator[Answer]:
        if "version" not in step.gates or wanted is None:
            return
        instance = f"{step.service}@{step.host}"

        def look() -> tuple[UnitFacts, Verdict]:
            facts, said = self._versions.of_life(instance)
            return facts, version.judge(instance, said, wanted.then)

        yield from self._tried("version", step, life, look)

    def _tried(
        self, gate: GateKind, step: RestartStep, life: Answer | None, look: Callable[[], tuple[UnitFacts, Verdict]]
    ) -> Generator[Answer, None, UnitFacts | None]:
        """Look some times before what speaks against the gate counts; gives what was seen, None when that says nothing.

        What has just begun may not say everything yet: a child that has not begun its own program shows an empty
        environment. life: what was well before; when it has ended, that is the answer.
        """
        instance = f"{step.service}@{step.host}"
        for tries_left in reversed(range(PROOF_TRIES)):
            self._check()
            try:
                facts, verdict = look()
            except OpsError as error:
                if not about_host(error):
                    raise
                if tries_left and not isinstance(error, HostKeyRefused):
                    time.sleep(RETRY_PAUSE_S)
                    continue
                yield Answer(gate, Verdict(answer="error", findings=(not_asked(step.host, error),)))
                return None
            if life is not None and life.incarnation is not None and facts.incarnation != life.incarnation:
                yield Answer("incarnation", ended_since(instance, life, facts))
                return None
            if verdict.answer == "pass" or not tries_left:
                yield Answer(gate, verdict, facts.incarnation)
                return facts
            time.sleep(RETRY_PAUSE_S)
        return None
