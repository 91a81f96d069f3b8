"""Asks, before a stage takes instances away, whether enough others of their service are in service."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from policies.change import Change
from policies.errors import OpsError
from policies.finding import Finding
from policies.fleet import Fleet
from policies.floor import below, out_of_service
from policies.plan import Plan
from policies.planning.drains import registrations
from policies.stages import Stage, is_untouched
from workers.admitting import admitted_now
from workers.hosts import Hosts
from workers.trouble import about_host

LOOKS = 3  # before a host that does not answer counts as one that does not serve
TAKES_AWAY = frozenset({"drain", "restart"})


class Floor:
    """`check` is called between looks and raises when the work must stop (lease)."""

    def __init__(self, fleet: Fleet, hosts: Hosts, check: Callable[[], None]) -> None:
        self._fleet = fleet
        self._hosts = hosts
        self._check = check

    def below(self, change: Change, plan: Plan, stage: Stage) -> tuple[Finding, ...]:
        """Why the stage may not begin now; empty when it may, has begun, or is an undo, which nothing waits for."""
        rolling = next((r for r in plan.rolling if r.service == stage.service), None)
        away = dict.fromkeys(
            f"{s.service}@{s.host}" for s in (plan.steps[i] for i in stage.steps) if s.kind in TAKES_AWAY
        )
        if rolling is None or not away or change.undoing or not is_untouched(change, stage):
            return ()
        others = [i for i in self._fleet.instances(stage.service) if i not in away]
        return below(rolling, tuple(away), self._look(others), self._look(away))

    def _look(self, instances: Iterable[str]) -> dict[str, Finding | None]:
        return {instance: self._why_not(instance) for instance in instances}

    def _why_not(self, instance: str) -> Finding | None:
        """One host that is away says nothing of the others, so each is asked by itself."""
        for tries_left in reversed(range(LOOKS)):
            self._check()
            try:
                why = out_of_service(instance, self._hosts.observe([instance], []).units[instance])
                return why or self._not_admitted(instance)
            except OpsError as error:
                if not about_host(error):
                    raise
                if not tries_left:
                    values: dict[str, str | int | float | None] = {"instance": instance, "error": error.message}
                    return Finding(code="floor.not-asked", effect="note", values=values)
        raise AssertionError

    def _not_admitted(self, instance: str) -> Finding | None:
        """Where its routers are asked before it is restarted, one that they send nothing to does not serve either."""
        at = registrations(self._fleet, instance)
        verdict = admitted_now(self._fleet, self._hosts, instance, at) if at else None
        if verdict is None or verdict.answer == "pass":
            return None
        values = {"instance": instance, "routers": ", ".join(dict.fromkeys(one.router for one in at))}
        told = next((f.values for f in verdict.findings), {})
        breaker = told.get("breaker")
        return Finding(code="floor.not-admitted", effect="note", values={**values, "breaker": breaker})
