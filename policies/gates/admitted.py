"""Does a router send this instance requests again: listed there, healthy by the router's own checks, breaker closed?"""

from __future__ import annotations

from policies.finding import Finding, Verdict
from policies.gates import Values, failed, passed, undecided
from policies.metrics.samples import Scrape
from policies.plan import Registration
from policies.routers.breaker import breaker_of
from policies.routers.listed import Listed, matching


def judge(
    instance: str,
    at: Registration,
    listed: tuple[Listed, ...] | Finding,
    metrics: Scrape | None,
    *,
    was_registered: bool,
    waited_s: float,
) -> Verdict:
    """Pass when all three are read and hold. One that was not registered before its drain is not expected to be now.

    listed: what the router lists, or why that is not known. metrics: of the router, None where they were not read.
    """
    values: Values = {"instance": instance, "router": at.router, "worker": at.worker, "waited_s": waited_s}
    if isinstance(listed, Finding):
        return Verdict(answer="inconclusive", findings=(listed,))
    found = matching(listed, at.worker)
    if not found and not was_registered:
        return passed("gate.admitted.never-was", values)
    if not found:
        return failed("gate.admitted.not-registered", {**values, "listed": len(listed)})
    values["worker"] = found[0].url
    breaker = breaker_of(metrics, [one.url for one in found])
    if any(one.healthy is False for one in found):
        return failed("gate.admitted.unhealthy", {**values, "breaker": breaker})
    if breaker in ("open", "half open"):
        return failed("gate.admitted.breaker", {**values, "breaker": breaker})
    if any(one.healthy is None for one in found):
        return undecided("gate.admitted.health-unknown", {**values, "breaker": breaker})
    if breaker != "closed":
        return undecided("gate.admitted.breaker-unknown", {**values, "breaker": breaker})
    return passed("gate.admitted.ok", {**values, "breaker": breaker})
