"""The watch of the replica that went first, and the readings its conditions are judged on: of this instance only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from policies import events as e
from policies.bake import measured
from policies.canaries import ended, judge, metrics_asked, required
from policies.causes.window import Window, key
from policies.finding import Finding
from policies.metrics.samples import Scrape
from policies.plan import CanaryWatch
from workers.bake import look, settle
from workers.measuring import LOOK_PAUSE_S, LOOKS

if TYPE_CHECKING:
    from workers.wiring import Wiring


class Canaries:
    """Of one plan: one for each service that changes and has replicas."""

    def __init__(self, wiring: Wiring, watches: Sequence[CanaryWatch]) -> None:
        self._w = wiring
        self._watches = tuple(watches)
        self._instances = tuple(watch.instance for watch in watches)

    def begin(self) -> e.CanaryStarted:
        """The readings that later ones are compared with; a rate needs a scrape from the beginning, too.

        Raises: HostUnreachable, HostAnswerLost.
        """
        until = self._w.clock() + max(watch.watch_s for watch in self._watches)
        readings = look(self._w.hosts, self._instances)
        self._scrape()
        return e.CanaryStarted(until=until, readings=readings)

    def watch(self, started: e.CanaryStarted, check: Callable[[], bool]) -> e.CanaryPassed | e.CanaryFailed | None:
        """Watch until `started.until`, then judge; None when `check` said to stop before."""
        settled = settle(self._w.hosts, self._instances, started.readings, started.until, self._w.clock, check)
        if settled is None:
            return None
        judged: tuple[e.Required, ...] = ()
        if not settled.against:
            judged = tuple(one for watch in self._watches for one in self._judged(watch))
        verdict = judge(settled.against, settled.missed, judged)
        return ended(self._instances, verdict, judged, measured(started.readings))

    def _judged(self, watch: CanaryWatch) -> tuple[e.Required, ...]:
        if not watch.require:
            return ()
        times: list[float] = []
        begun = self._w.clock()
        for number in range(LOOKS):
            if number:
                self._w.measuring.sleep(LOOK_PAUSE_S)
            times += self._scrape(watch.instance)
        start, end = (min(times), max(times)) if times else (begun, self._w.clock())
        read = {
            key(metric): self._w.metrics.window(metric.text, watch.instance, start=start, end=end)
            for metric in metrics_asked(watch)
        }
        return required(watch, Window(start, end, read))

    def _scrape(self, *instances: str) -> list[float]:
        """When each of them answered, by its host's clock."""
        asked = [i for i in instances or self._instances if self._w.fleet.at(i).metrics is not None]
        found: dict[str, Scrape | Finding] = self._w.metrics.take(asked) if asked else {}
        return [scrape.at for scrape in found.values() if isinstance(scrape, Scrape)]
