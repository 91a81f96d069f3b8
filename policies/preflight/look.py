"""What a check before the start may look at."""

from __future__ import annotations

from dataclasses import dataclass

from policies.facts import UnitFacts
from policies.finding import Effect, Finding
from policies.fleet import Fleet, Service


@dataclass(frozen=True, slots=True)
class Look:
    """One instance. boots: recorded seconds, oldest first. changed: its files are written by the plan."""

    fleet: Fleet
    instance: str
    unit: UnitFacts
    boots: tuple[float, ...] = ()
    changed: bool = False

    @property
    def service(self) -> Service:
        """The service in the fleet file."""
        return self.fleet.services[self.unit.service]

    def finding(self, code: str, effect: Effect = "warn", **values: str | float | None) -> Finding:
        """A finding about this instance and its unit."""
        return Finding(code=code, effect=effect, values={"instance": self.instance, "unit": self.unit.unit, **values})
