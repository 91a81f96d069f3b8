"""Asks the gates of one step. Waiting happens on the host; the verdicts are made by `policies.gates`."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from policies import proof as ladder
from policies.errors import HostAnswerLost, HostUnreachable
from policies.facts import HttpAnswer, Incarnation, UnitFacts
from policies.finding import Finding, Verdict
from policies.fleet import Canary, Fleet, Service
from policies.gates import canary, environment, health, incarnation, port, reported
from policies.plan import GateKind, RestartStep
from policies.planning.placement import effective_now
from policies.proof import Proof
from workers.executors.answers import HttpAsk, Waited
from workers.hosts import Hosts

RETRY_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True)
class Answer:
    """What one gate said. `waited_s` and `host_at` (readiness) are by the host's own clock."""

    gate: GateKind
    verdict: Verdict
    incarnation: Incarnation | None = None
    waited_s: float | None = None
    host_at: float | None = None


@dataclass(frozen=True, slots=True)
class Aim:
    """What the step's knob is to be there. `wanted` None: absent."""

    variable: str
    wanted: str | None
    reported_path: str | None


class Gatekeeper:
    """Gates of restarts. `check` is called between slices and raises when the work must stop (lease)."""

    def __init__(self, fleet: Fleet, hosts: Hosts, check: Callable[[], None]) -> None:
        self._fleet = fleet
        self._hosts = hosts
        self._check = check

    def ask(
        self, step: RestartStep, before: Incarnation, issued_at: float, aim: Aim, passed: frozenset[str]
    ) -> Iterator[Answer]:
        """Answers of the step's gates that have not passed yet, in order; stops after the first that does not pass."""
        for answers in (self._life(step, before, issued_at), self._value(step, aim), self._path(step)):
            for answer in answers:
                if answer.gate not in step.gates or answer.gate in passed:
                    continue
                yield answer
                if answer.verdict.answer != "pass":
                    return

    def _life(self, step: RestartStep, before: Incarnation, issued_at: float) -> Iterator[Answer]:
        service = self._fleet.services[step.service]
        instance = f"{step.service}@{step.host}"
        waited = self._wait(step, service, before)
        if isinstance(waited, Finding):
            yield Answer("incarnation", Verdict(answer="error", findings=(waited,)))
            return
        ready_at = waited.since.ready_at
        waited_s = (ready_at or waited.at) - issued_at
        life = incarnation.judge(
            instance,
            before,
            waited.incarnation,
            active_state=waited.active_state,
            sub_state=waited.sub_state,
            result=waited.result,
            n_restarts=waited.n_restarts,
            waited_s=waited_s,
        )
        yield Answer("incarnation", life, waited.incarnation, waited_s, waited.since.new_incarnation_at)
        owner = port.judge(instance, waited.port, waited.incarnation, waited_s=waited_s)
        yield Answer("port", owner, waited.incarnation, waited_s, waited.since.port_owned_at)
        well = health.judge(instance, waited.health, confirmed=waited.state == "ready", waited_s=waited_s)
        yield Answer("health", well, waited.incarnation, waited_s, ready_at)

    def _wait(self, step: RestartStep, service: Service, before: Incarnation) -> Waited | Finding:
        """Long polls on the host until it is ready, has failed, or the boot time is over."""
        timing = self._fleet.timing
        deadline = time.monotonic() + service.health.boot_s
        host = self._hosts.at(step.host)
        while True:
            self._check()
            left = deadline - time.monotonic()
            try:
                waited = host.wait(
                    step.unit,
                    before=before,
                    port=service.health.port,
                    health=service.health,
                    confirmations=timing.health_confirmations,
                    poll_s=timing.poll_s,
                    for_s=max(0.1, min(timing.wait_slice_s, left)),
                )
            except (HostUnreachable, HostAnswerLost) as error:
                # Looking changes nothing, so looking again is safe; the boot goes on meanwhile.
                if time.monotonic() >= deadline:
                    values: dict[str, str | int | float | None] = {"host": step.host, "error": error.message}
                    return Finding(code="gate.host-not-answering", effect="refuse", values=values)
                time.sleep(RETRY_PAUSE_S)
                continue
            looping = waited.n_restarts is not None and waited.n_restarts >= incarnation.CRASH_LOOP
            if waited.state in {"ready", "failed"} or looping or time.monotonic() >= deadline:
                return waited

    def _value(self, step: RestartStep, aim: Aim) -> Iterator[Answer]:
        if "environment" not in step.gates:
            return
        instance = f"{step.service}@{step.host}"
        try:
            facts = self._hosts.observe([instance], [aim.variable]).units[instance]
        except (HostUnreachable, HostAnswerLost) as error:
            yield Answer("environment", _not_asked(step.host, error))
            return
        yield Answer("environment", environment.judge(prove(facts, replace(aim, reported_path=None))), facts.incarnation)
        if aim.reported_path is not None:
            info = next((a for a in facts.http if a.id == "server_info"), None)
            verdict = reported.judge(instance, info, aim.reported_path, aim.wanted)
            yield Answer("reported", verdict, facts.incarnation)

    def _path(self, step: RestartStep) -> Iterator[Answer]:
        if "canary" in step.gates:
            for service in self._fleet.services.values():
                if service.canary is not None:
                    yield Answer("canary", self.canary(service, service.canary))

    def canary(self, service: Service, probe: Canary) -> Verdict:
        """One generation with a fresh nonce, tried again until it passes or the canary's time is over.

        Again, because a router needs some health checks of its own before it takes a restarted worker back.
        """
        deadline = time.monotonic() + probe.timeout_s
        while True:
            self._check()
            nonce = secrets.token_hex(6)
            left_s = max(1.0, deadline - time.monotonic())
            ask = HttpAsk(
                id="canary",
                url=probe.url,
                method="POST",
                body=canary.filled(probe.body, nonce),
                timeout_s=left_s,
                max_bytes=65536,
            )
            try:
                seen = self._hosts.observe([], [], {service.on[0]: [ask]})
            except (HostUnreachable, HostAnswerLost) as error:
                verdict = _not_asked(service.on[0], error)
            else:
                expected = probe.expect_text.replace(canary.PLACEHOLDER, nonce)
                verdict = canary.judge(service.name, seen.probes.get("canary"), expected)
            if verdict.answer == "pass" or time.monotonic() >= deadline:
                return verdict
            time.sleep(RETRY_PAUSE_S)


def prove(facts: UnitFacts, aim: Aim) -> Proof:
    """The ladder for one instance from one look at it."""
    info: HttpAnswer | None = next((a for a in facts.http if a.id == "server_info"), None)
    said = None
    if aim.reported_path is not None and info is not None and info.status == 200:
        said = reported.reported_value(info.body, aim.reported_path)
    return ladder.prove(
        instance=f"{facts.service}@{facts.host}",
        variable=aim.variable,
        wanted=aim.wanted,
        processes=facts.processes,
        effective=effective_now(facts, aim.variable),
        reported=said,
        report_asked=aim.reported_path is not None,
    )


def text_sha256(text: str | None) -> str | None:
    """SHA-256 of a file's text as the helper sees it; None for no file."""
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


def _not_asked(host: str, error: HostUnreachable | HostAnswerLost) -> Verdict:
    values: dict[str, str | int | float | None] = {"host": host, "error": error.message}
    return Verdict(answer="error", findings=(Finding(code="gate.host-not-answering", effect="refuse", values=values),))
