"""Canaries as measurements: how long one took, with the load at that moment, and what a slow one agrees with.

A canary's latency says nothing without the load, so it is never told without. What cannot be measured is left out and
never holds up the change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from policies import events as e
from policies.change import Change
from policies.citation import Citation
from policies.errors import StoreUnavailable
from policies.finding import Finding, Verdict
from policies.gates.canary import PASSED
from policies.intents import StateCause, Where
from policies.metrics.samples import Scrape
from policies.probe import Probe, probe
from policies.statement import Statement, Times
from workers.generations import Generations
from workers.judging import Judging, Span
from workers.reserved import known, reserved

if TYPE_CHECKING:
    from workers.wiring import Wiring

LOG = structlog.get_logger(__name__)
AROUND_S = 2.0  # a reading so far away from a probe is still of it
LATE_S = 10.0  # and so is the look that was begun when it came back, which a busy engine may answer as late as this
BEFORE_S = 600.0  # what a slow probe is compared with: the time before the change began
LOOKS = 3


class Probing:
    """Of one worker's turn at one change."""

    def __init__(self, wiring: Wiring, generations: Generations) -> None:
        self._w = wiring
        self._generations = generations

    def read(self, verdict: Verdict) -> Probe | None:
        """The measurement behind a canary that came back; None for another verdict."""
        values = next((f.values for f in verdict.findings if f.code in PASSED), None)
        if verdict.answer != "pass" or values is None:
            return None
        service, took_s = str(values["service"]), _number(values.get("took_s"))
        at = _number(values.get("at")) + took_s  # a host's answer tells when it was asked
        earlier = [x.event.probe for x in self._w.ledger.index(f"probe:{service}") if isinstance(x.event, PROBING)]
        load = self._load(Times(start=at - took_s - AROUND_S, end=at + AROUND_S))
        return probe(service, at, took_s, [one.took_s for one in earlier if one is not None], load)

    def after_watch(self, change: Change, ended: e.Baked) -> tuple[list[e.Probed], e.Baked | tuple[Finding, ...]]:
        """One more canary each through what the change touched, now that traffic is back.

        Gives what came back, with the end of the watch, or with why one did not come. A successor asks no second time.
        """
        if any(isinstance(entry.event, e.Probed) for entry in self._w.ledger.entries(change.id)):
            return [], ended
        plan = change.plan
        touched = plan.services if plan is not None else ()
        probed: list[e.Probed] = []
        for service, instance in self._generations.reaching(touched):
            if service.canary is None:
                continue
            self._scrape()
            verdict = self._generations.ask(service, service.canary, instance)
            found = self.read(verdict)
            if found is None:
                return probed, verdict.findings
            probed.append(e.Probed(probe=found))
        return probed, ended

    def state_slow(self, change: Change) -> None:
        """State, once, what each slow probe of the change agrees with. Done again it does nothing."""
        for entry in self._w.ledger.entries(change.id):
            found = entry.event.probe if isinstance(entry.event, PROBING) else None
            if found is None or not found.slow:
                continue
            key = f"st:probe:{change.id}:{entry.seq}"
            try:
                if known(self._w.ledger, key) is None:
                    self._state(change, found, key)
            except StoreUnavailable:
                raise
            except Exception:
                LOG.exception("a slow probe is not judged", change=change.id, seq=entry.seq)

    def _state(self, change: Change, found: Probe, key: str) -> None:
        measuring = self._w.measuring
        read_at = max((c.time for c in found.load), default=found.at)
        effect = Times(start=found.at - found.took_s, end=max(found.at + AROUND_S, read_at))
        began = min(effect.start, change.started_at) - 1.0
        knob = self._w.fleet.knobs.get(change.plan.knob or "") if change.plan is not None else None
        services = knob.on if knob is not None else (found.service,)
        judging = Judging(self._w.fleet, measuring, self._w.clock)
        judged = judging.probed(Span(effect, Times(start=began - BEFORE_S, end=began)), services)
        where = change.asked.where if change.asked is not None else Where()
        statement = Statement(
            id=reserved(self._w.ledger, "st", key),
            said=StateCause(),
            actor=None,
            where=Where(channel=where.channel),
            about=change.id,
            judged=judged,
            probe=found,
        )
        self._w.looks.truth.record(statement)

    def _load(self, times: Times) -> tuple[Citation, ...]:
        seen = [at for at in self._scrape() if at <= times.end + LATE_S]
        looked = Times(start=times.start, end=max([times.end, *seen]))
        try:
            measuring = self._w.measuring
            return measuring.load(measuring.window(looked, (), ()))
        except StoreUnavailable:
            raise
        except Exception:
            LOG.exception("the load of a probe is not measured")
            return ()

    def _scrape(self) -> list[float]:
        """Look at everything; when each look was answered, by the clocks of the hosts."""
        seen: list[float] = []
        try:
            instances = self._w.measuring.instances(self._w.fleet.services)
            for _ in range(LOOKS):  # an engine under load may answer late, and half a fleet is no reading
                answers = self._w.metrics.take(instances).values()
                seen += [answer.at for answer in answers if isinstance(answer, Scrape)]
                if not any(isinstance(answer, Finding) for answer in answers):
                    break
        except StoreUnavailable:
            raise
        except Exception:
            LOG.exception("a probe's moment is not scraped")
        return seen


PROBING = (e.GatePassed, e.Probed)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
