"""What a check before the start may look at."""

from __future__ import annotations

from dataclasses import dataclass

from policies.facts import UnitFacts
from policies.finding import Effect, Finding
from policies.fleet import Fleet, Service
from policies.states.state import State


@dataclass(frozen=True, slots=True)
class Look:
    """One instance. boots: recorded seconds, oldest first. changed: its files are written by the plan.

    state: what its metrics say that it does. anyway: who asked to restart it whatever they say. reset: a value or a
    version changes somewhere in the plan, and the restart is for that.
    """

    fleet: Fleet
    instance: str
    unit: UnitFacts
    boots: tuple[float, ...] = ()
    changed: bool = False
    state: State | None = None
    anyway: str | None = None
    reset: bool = False

    @property
    def service(self) -> Service:
        """The service in the fleet file."""
        return self.fleet.at(self.instance)

    def finding(self, code: str, effect: Effect = "warn", **values: str | float | None) -> Finding:
        """A finding about this instance and its unit."""
        return Finding(code=code, effect=effect, values={"instance": self.instance, "unit": self.unit.unit, **values})
