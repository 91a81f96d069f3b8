"""Whether an instance is admitted at its routers, as they say it themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from policies import events as e
from policies.errors import OpsError
from policies.finding import Verdict
from policies.fleet import Fleet
from policies.gates.admitted import judge
from policies.plan import AdmitStep, Registration
from policies.routers.listed import Taken
from workers.gate_answers import not_asked
from workers.hosts import Hosts
from workers.routers import Routers, taken_of, was_registered
from workers.trouble import about_host

# Source: FACTS-serving 3.4, a router checks every 60 s and takes a worker back after 2 successes; its breaker is half
# open after 60 s. A worker that was just registered is sent requests at once (sglang-router 0.3.2).
ADMIT_S = 150.0
ORDER = ("error", "inconclusive", "fail")


def admitted(routers: Routers, step: AdmitStep, entries: Iterable[e.Entry], waited_s: float = 0.0) -> Verdict:
    """One look at every router of the step: pass when all of them do; else what each said that does not."""
    taken, _ = taken_of(entries, step)
    return _look(routers, f"{step.service}@{step.host}", step.at, taken, waited_s)


def admitted_now(fleet: Fleet, hosts: Hosts, instance: str, at: Sequence[Registration]) -> Verdict:
    """One look, without waiting: whether each of these routers sends the instance requests."""
    return _look(Routers(fleet, hosts), instance, at, (), 0.0)


def _look(
    routers: Routers, instance: str, ats: Sequence[Registration], taken: tuple[Taken, ...], waited_s: float
) -> Verdict:
    verdicts: list[Verdict] = []
    for at in ats:
        try:
            seen = routers.look(at)
        except OpsError as error:
            if not about_host(error):
                raise
            verdicts.append(Verdict(answer="error", findings=(not_asked(at.router.partition("@")[2], error),)))
            continue
        was = was_registered(taken, at)
        verdicts.append(judge(instance, at, seen.listed, seen.metrics, was_registered=was, waited_s=waited_s))
    bad = [verdict for verdict in verdicts if verdict.answer != "pass"]
    findings = tuple(finding for verdict in bad or verdicts for finding in verdict.findings)
    worst = max((verdict.answer for verdict in bad), key=ORDER.index, default="pass")
    return Verdict(answer=worst, findings=findings)
