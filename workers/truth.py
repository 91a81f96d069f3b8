"""Statements about causes: judged on what was measured, recorded, contested. Reads hosts, changes nothing there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from policies import events as e
from policies.causes.claim import Claim, catalogue, metrics_needed
from policies.causes.verdict import Verdict
from policies.change import Change
from policies.errors import LedgerConflict, NotFound
from policies.finding import Finding
from policies.intents import Actor, DisputeStatement, StateCause, Where
from policies.statement import Judgement, Statement, Times, claim_said
from policies.states.state import State
from workers.blamed import BlamedChanges, of_fleet
from workers.judging import Judging, Span
from workers.measuring import Measuring
from workers.reserved import known, reserved
from workers.statements import Told, told, told_about
from workers.suspicions import Kept

if TYPE_CHECKING:
    from workers.wiring import Wiring

CHANGE_GAP_S = 1.0
AROUND_S = 15.0  # what was seen when a change was asked for, that looked at no metrics itself
AFTER_S = 60.0  # what was seen after a change, when its effect is asked about later


@dataclass(frozen=True, slots=True)
class Why:
    """What is known about a change or a service: states, load, what each catalogued cause comes to, and what was said.

    change None: it is about a service, now.
    """

    about: str
    change: Change | None
    judged: Judgement
    states: dict[str, State]
    verdicts: tuple[Verdict, ...]
    statements: tuple[Told, ...]
    suspicion: Kept | None


class Truth:
    """Raises everywhere: StoreUnavailable."""

    def __init__(self, wiring: Wiring, measuring: Measuring) -> None:
        self._w = wiring
        self._m = measuring
        self._j = Judging(wiring.fleet, measuring, wiring.clock)
        self._b = BlamedChanges(wiring, measuring)

    def state(self, said: StateCause, actor: Actor, where: Where, *, key: str | None = None) -> Told | Finding:
        """Judge what somebody states and record it. A finding where it cannot be judged; nothing is recorded then.

        key: stated again under the same key, it is the same statement.
        Raises: NotFound when there is no such change.
        """
        ledger = self._w.ledger
        key = None if key is None else f"st:{key}"
        before = known(ledger, key) if key is not None else None
        if before is not None:
            return told(ledger, before)
        claim = claim_said(said, self._w.fleet)
        if isinstance(claim, Finding):
            return claim
        change = ledger.load(said.of) if said.of is not None else None
        about = said.of
        if claim.change is not None:
            claim = self._b.named(claim, change)
            if claim.change is None:
                return Finding(code="claim.no-last-change", effect="refuse")
            about = self._b.told_at(claim.change, said.of)
        judged = self._judged(claim, change)
        name = ledger.new_id("st") if key is None else reserved(ledger, "st", key)
        return self.record(Statement(id=name, said=said, actor=actor, where=where, about=about, judged=judged))

    def record(self, statement: Statement) -> Told:
        """Record a statement, unless it is recorded already, and have it drawn."""
        with suppress(LedgerConflict):  # heard twice at the same time: the first one stands
            self._w.ledger.append(statement.id, e.StatementMade(statement=statement), expect_version=0)
        self._w.doorbell.ring("narrate", "draw", statement.id)
        return told(self._w.ledger, statement.id)

    def again(self, name: str, by: str) -> bool:
        """Judge a statement once more because `by` brought the old state back; once, and True when it was done now."""
        ledger = self._w.ledger
        found = told(ledger, name)
        judged = self._again(found.statement)
        event = e.StatementJudgedAgain(change=by, judged=judged)
        with suppress(LedgerConflict):  # somebody contests it in this moment: the next round comes
            if any(isinstance(x.event, e.StatementJudgedAgain) and x.event.change == by for x in found.entries):
                return False
            ledger.append(name, event, expect_version=len(found.entries))
            self._w.doorbell.ring("narrate", "draw", name)
            return True
        return False

    def dispute(self, said: DisputeStatement, actor: Actor, *, key: str | None = None) -> Told:
        """Judge a statement once more on the same windows, with all that is known by now, and record what came of it.

        Raises: NotFound when there is no such statement.
        """
        ledger = self._w.ledger
        found = told(ledger, said.statement)
        if key is not None and ledger.written(said.statement, key) is not None:
            return found
        judged = self._again(found.statement)
        event = e.StatementDisputed(actor=actor, because=said.because, judged=judged)
        while True:
            try:
                ledger.append(said.statement, event, expect_version=len(ledger.entries(said.statement)), nonce=key)
                break
            except LedgerConflict:
                continue  # somebody else contested it in the same moment: both stand
        about = found.statement.about
        # what this one no longer settles may be settled by another one now
        names = [said.statement] if about is None else [other.statement.id for other in told_about(ledger, about)]
        for name in names:
            self._w.doorbell.ring("narrate", "draw", name)
        return told(ledger, said.statement)

    def why(self, about: str) -> Why:
        """What the metrics say about a change, or about a service now.

        Raises: NotFound.
        """
        fleet = self._w.fleet
        change = self._w.ledger.load(about) if about not in fleet.services else None
        services = self._services(change) if change is not None else self._below(about)
        span = self._span(change)
        claims = [claim for claim in catalogue(fleet) if self._is_about(claim, services)]
        judged, verdicts = self._j.all(claims, span, services)
        if change is not None and (claim := self._b.claim_about(change)) is not None:
            verdicts = (self._b.judged(claim, services).verdict, *verdicts)
        kept = self._w.client.suspicion(f"su-{about.partition('-')[2]}") if change is not None else None
        statements = told_about(self._w.ledger, about) if change is not None else ()
        return Why(about, change, judged, self._m.states(services, span.effect.end), verdicts, statements, kept)

    def _judged(self, claim: Claim, about: Change | None) -> Judgement:
        if claim.change is None:
            return self._j.judged(claim, self._span(about), self._services(about))
        return self._b.judged(claim, self._services(about or self._w.ledger.load(claim.change)))

    def _again(self, statement: Statement) -> Judgement:
        made = statement.judged
        change = self._w.ledger.load(statement.about) if statement.about is not None else None
        services = self._services(change)
        span = Span(made.effect, made.baseline, made.ongoing)
        if statement.probe is not None:
            return self._j.probed(span, services)
        claim = claim_said(statement.said, self._w.fleet)
        if isinstance(claim, Finding):  # the fleet file has lost a metric or a cause that it stands on
            lost = Verdict(word="unverified", reason=claim, name=statement.said.name or "")
            return made.model_copy(update={"at": self._w.clock(), "verdict": lost, "others": ()})
        if claim.change is not None:
            # the one that was meant: by now another one may be the last
            claim = self._b.named(replace(claim, change=made.verdict.name or claim.change), change)
            return self._b.judged(claim, services, made.effect if made.effect.end > made.effect.start else None)
        return self._j.judged(claim, span, services)

    def _span(self, change: Change | None) -> Span:
        """The window of an effect, and the one before it. Without a change: now, which is looked at for it."""
        if change is None:
            effect = self._m.look()
            return Span(effect, self._m.before(effect), ongoing=True)
        if change.planned is not None and change.planned.blame is not None:
            return Span(change.planned.blame.effect, change.planned.blame.baseline, ongoing=True)
        if change.started_at and not change.ended:
            effect = self._m.look()
        elif change.started_at and change.ended_at is not None:
            probe = _probe_of(self._w.ledger.entries(change.id))
            effect = probe or Times(start=change.ended_at, end=min(self._w.clock(), change.ended_at + AFTER_S))
        else:
            effect = Times(start=change.asked_at - AROUND_S, end=min(self._w.clock(), change.asked_at + AROUND_S))
        began = (change.started_at or change.asked_at) - CHANGE_GAP_S
        return Span(effect, self._m.before(Times(start=min(began, effect.start), end=effect.end)))

    def _services(self, change: Change | None) -> tuple[str, ...]:
        return of_fleet(self._w.fleet, change)

    def _below(self, service: str) -> tuple[str, ...]:
        """A service and all that it needs."""
        fleet = self._w.fleet
        if service not in fleet.services:
            raise NotFound(f"there is no service or change `{service}`", hint=f"services: {', '.join(fleet.services)}")
        found = [service]
        for name in found:
            found += [need for need in fleet.services[name].needs if need not in found]
        return tuple(found)

    def _is_about(self, claim: Claim, services: Iterable[str]) -> bool:
        """Whether some metric of a claim is of these services; one without named metrics is about all."""
        known_metrics = self._w.fleet.metrics
        named = [m.text for m in metrics_needed(claim) if not m.free and m.text in known_metrics]
        return not named or any(known_metrics[name].on in set(services) for name in named)


def _probe_of(entries: Sequence[e.Entry]) -> Times | None:
    """The time of the last canary that a change asked for."""
    for entry in reversed(entries):
        event = entry.event
        if isinstance(event, e.GatePassed | e.Probed) and event.probe is not None:
            return Times(start=event.probe.at - event.probe.took_s - CHANGE_GAP_S, end=event.probe.at + CHANGE_GAP_S)
    return None
