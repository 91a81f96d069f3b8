"""One more look after a gate has failed: what a person would look at next is quoted with the failure."""

from __future__ import annotations

from policies.aftermath import foreseen, journal, limit, version, workers
from policies.devices import left_over, told
from policies.errors import OpsError
from policies.facts import HttpAnswer, UnitFacts
from policies.finding import Finding, Verdict
from policies.fleet import Fleet
from policies.gates.incarnation import OTHER
from policies.plan import Plan, RestartStep
from workers.aims import Aim
from workers.executors.answers import HttpAsk, LogAsk, unit_ask
from workers.gate_answers import Answer
from workers.hosts import Hosts
from workers.issued import Issued
from workers.trouble import about_host

LIFE = frozenset({"incarnation", "port", "health"})
VALUE = frozenset({"environment", "reported"})
LOG_LINES = 100
# Units: seconds. What hangs has failed its gate already; it is not waited for again
ASK_S = 5.0


class Aftermath:
    """Looks at a unit whose gate failed. A host that cannot be asked then adds nothing."""

    def __init__(self, fleet: Fleet, hosts: Hosts) -> None:
        self._fleet = fleet
        self._hosts = hosts

    def told(self, plan: Plan, step: RestartStep, issued: Issued, aim: Aim | None, answer: Answer) -> Verdict:
        """The verdict of the answer, with what was found out behind its own findings."""
        verdict = answer.verdict
        if (
            verdict.answer == "error"
            or answer.gate not in LIFE | VALUE
            or any(f.code == OTHER for f in verdict.findings)
        ):
            return verdict
        try:
            unit, probes = self._look(step, issued)
        except OpsError as error:
            if not about_host(error):
                raise
            return verdict
        instance = f"{step.service}@{step.host}"
        if answer.gate in VALUE:
            found = journal.about(instance, unit.log, aim.variable) if aim is not None else ()
        else:
            found = (
                *self._of_life(plan, instance, unit, answer),
                *self._of_workers(instance, unit, probes, answer),
            )
            found = (*found, *told("gate.device-held", "note", unit, left_over(self._fleet, unit)))
            found = (*found, *journal.tail(instance, unit))
        return verdict.model_copy(update={"findings": (*verdict.findings, *found)})

    def _look(self, step: RestartStep, issued: Issued) -> tuple[UnitFacts, dict[str, HttpAnswer]]:
        service = self._fleet.at(f"{step.service}@{step.host}")
        ask = unit_ask(service, (), LogAsk(LOG_LINES, issued.at or None))
        quick = tuple(probe.model_copy(update={"timeout_s": min(ASK_S, probe.timeout_s)}) for probe in ask.http)
        ask = ask.model_copy(update={"http": tuple(p for p in quick if p.id != "metrics")})
        listed = workers.workers_url(service.health.url)
        probes = [HttpAsk(id=workers.ASK, url=listed, timeout_s=ASK_S)] if listed is not None else []
        seen = self._hosts.at(step.host).observe([ask], probes)
        return seen.facts.units[0], {found.id: found for found in seen.http}

    @staticmethod
    def _of_life(plan: Plan, instance: str, unit: UnitFacts, answer: Answer) -> tuple[Finding, ...]:
        return (
            *foreseen.timeout(plan, instance, answer.verdict.findings),
            *version.moved(instance, unit, dict(plan.versions).get(instance)),
            *limit.reached(instance, unit, unit.n_restarts),
        )

    @staticmethod
    def _of_workers(
        instance: str, unit: UnitFacts, probes: dict[str, HttpAnswer], answer: Answer
    ) -> tuple[Finding, ...]:
        if answer.gate != "health":
            return ()
        said = next((found for found in unit.http if found.id == "health" and found.status != 200), None)
        return workers.lacking(instance, said, probes.get(workers.ASK))
