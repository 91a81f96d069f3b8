"""What engines do at the moment of a look: what the look read, held against what was recorded shortly before."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from policies.facts import HttpAnswer, UnitFacts
from policies.finding import Finding
from policies.fleet import Fleet
from policies.metrics.samples import Scrape, answered_scrape
from policies.states.judge import HUNG_S, IDLE_S, Look, judge_state
from policies.states.state import State
from policies.states.work import is_engine

REACH_S = 300.0  # an earlier scrape is of the same matter for so long
AGAIN_S = 2.0  # between two looks at an engine whose health fails and of which nothing was recorded
TOGETHER_S = 5.0  # a router's scrape belongs to an engine's when it is not further away


class Scrapes(Protocol):
    """Scrapes that were recorded, and fresh ones: `workers.metrics`."""

    def scrapes(self, instance: str, start: float, end: float) -> tuple[Scrape, ...]:
        """Those of an instance (service@host) in a window, oldest first. Units: epoch seconds."""

    def take(self, instances: Sequence[str]) -> Mapping[str, Scrape | Finding]:
        """Scrapes of these as they are now."""


class States:
    """Of the engines of one fleet."""

    def __init__(self, fleet: Fleet, scrapes: Scrapes, sleep: Callable[[float], object] = time.sleep) -> None:
        self._fleet = fleet
        self._scrapes = scrapes
        self._sleep = sleep

    def of(self, units: Mapping[str, UnitFacts]) -> dict[str, State]:
        """The states of those that are engines and answered.

        Where the health check fails and the recorded scrapes do not tell whether the engine works, it is asked once
        more: a person is waiting for an answer, and the engine for not being restarted.

        Raises: StoreUnavailable.
        """
        seen: dict[str, Scrape] = {}
        for instance, unit in units.items():
            now = answered_scrape(instance, _answer(unit, "metrics"))
            if isinstance(now, Scrape) and is_engine(now):
                seen[instance] = now
        found = {instance: self.at(scrape) for instance, scrape in seen.items()}
        open_ = [i for i, state in found.items() if _fails(units[i]) and state.is_in("busy") is None]
        return found | self._again({i: seen[i] for i in open_}, units)

    def _again(self, first: Mapping[str, Scrape], units: Mapping[str, UnitFacts]) -> dict[str, State]:
        """Those that a second scrape decides."""
        if not first:
            return {}
        # the health check itself takes up to 20 s when it fails, and the first scrape was taken beside it
        took_s = [health.took_s for i in first if (health := _answer(units[i], "health")) is not None]
        self._sleep(max(0.0, AGAIN_S - min(took_s, default=0.0)))
        decided: dict[str, State] = {}
        for instance, now in self._scrapes.take(tuple(first)).items():
            if isinstance(now, Scrape) and is_engine(now):
                state = judge_state(self._look(first[instance]), self._look(now))
                if state.is_in("busy") is not None:
                    decided[instance] = state
        return decided

    def at(self, now: Scrape) -> State:
        """The state at a scrape: of the closest earlier one that decides it, else of one that is further away.

        Raises: StoreUnavailable.
        """
        earlier = [s for s in self._scrapes.scrapes(now.instance, now.at - REACH_S, now.at) if is_engine(s)]
        state = judge_state(None, self._look(now))
        for apart_s in (IDLE_S, HUNG_S):
            before = next((s for s in reversed(earlier) if now.at - s.at >= apart_s), None)
            if before is None:
                break
            state = judge_state(self._look(before), self._look(now))
            if len(state.possible) == 1:
                break
        return state

    def _look(self, scrape: Scrape) -> Look:
        service = scrape.instance.partition("@")[0]
        above = [name for name in self._fleet.services if service in self._needed(name)]
        near: list[Scrape | None] = []
        for instance in (i for name in above for i in self._fleet.instances(name)):
            found = self._scrapes.scrapes(instance, scrape.at - TOGETHER_S, scrape.at + TOGETHER_S)
            nearest = min(found, key=lambda s: abs(s.at - scrape.at), default=None)
            if nearest is None or not is_engine(nearest):  # an engine that needs another one is no router
                near.append(nearest)
        return Look(scrape, tuple(near) or None)

    def _needed(self, service: str) -> set[str]:
        """Every service that one needs, directly or not."""
        found: set[str] = set()
        waiting = list(self._fleet.services[service].needs)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += self._fleet.services[name].needs
        return found


def _answer(unit: UnitFacts, name: str) -> HttpAnswer | None:
    return next((answer for answer in unit.http if answer.id == name), None)


def _fails(unit: UnitFacts) -> bool:
    health = _answer(unit, "health")
    return health is not None and health.status != 200
