"""Draining one instance and giving it back: what its step in the plan says, done as far as it is not done.

Whoever does this asks the router first, and so does a successor: what is out is not taken out again, what is listed is
not registered again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Self

from policies import events as e
from policies.finding import Finding
from policies.metrics.samples import Scrape
from policies.plan import AdmitStep, DrainStep, Registration
from policies.routers.breaker import in_flight_at
from policies.routers.listed import Listed, Taken, differs
from policies.states.drained import ROLES, Drained, judge_drained
from policies.states.judge import IDLE_S
from workers.enlisting import PAUSE_S, Enlisting, NotDone, Step, about
from workers.executors.answers import UnitAsk
from workers.lease import Held as Lease
from workers.routers import Routers, Seen

if TYPE_CHECKING:
    from workers.wiring import Wiring


class Drains:
    """The drains and admits of one change. Raises what `Enlisting` raises."""

    def __init__(self, enlisting: Enlisting) -> None:
        self._list = enlisting
        self._begun: dict[tuple[e.Part, int], float] = {}  # steady clock

    @classmethod
    def of(
        cls,
        wiring: Wiring,
        lease: Lease,
        change: str,
        first: Mapping[str, int],
        entries: Callable[[], Iterable[e.Entry]],
    ) -> Self:
        """Those of one worker's turn. first: tokens of the change's first lease."""
        routers = Routers(wiring.fleet, wiring.hosts)
        return cls(Enlisting(routers, wiring.hosts, lease, change, first, entries))

    def fence(self, step: Step) -> None:
        """Shut out older workers at every router of the step."""
        self._list.fence(step)

    def do(self, step: Step, part: e.Part, index: int) -> e.StepDone:
        """Do it, as far as it is not done."""
        if isinstance(step, AdmitStep):
            return self._admit(step, part, index)
        return self._drain(step, part, index)

    def _drain(self, step: DrainStep, part: e.Part, index: int) -> e.StepDone:
        taken: list[Taken] = []
        notes: list[Finding] = []
        gone_s = 0.0  # of the deadline, for a worker that died
        listed = False
        for at in step.at:
            seen = self._list.look(at)
            if (part, index) not in self._begun:
                gone_s = max(gone_s, self._list.out_for_s(at, f"{part}-{index}", seen.at))
            there = self._list.registered(at, seen)
            listed = listed or bool(there)
            found = self._list.take_out(step, at, f"{part}-{index}", there)
            taken += [Taken(router=at.router, worker=at.worker, found=one) for one in found or (None,)]
            notes += _as_found(step, at, found)
        begun = self._begun.setdefault((part, index), time.monotonic() - gone_s)
        ended: tuple[Finding, ...] = (about("drain.still-out", "note", step, routers=_routers(step)),)
        if part == "do" or listed or not self._list.is_out(step):
            ended = self._until_empty(step, part, begun)
        for at in step.at:
            if self._list.registered(at):
                raise NotDone(about("hold.registered-again", "refuse", step, router=at.router, worker=at.worker))
        return _done(step, part, index, time.time(), (*ended, *notes), tuple(taken))

    def still_out(self, step: DrainStep, part: e.Part, index: int) -> None:
        """Before the restart behind a drain that is done: a router that was restarted may list the instance again.

        Held then, and a person's word to look again drains anew; an undo does so by itself.
        """
        told = part == "do" and self._list.to_look_again()
        if not told:
            back = [at for at in step.at if self._list.registered(at)]
            if not back:
                return
            if part == "do":
                (at, *_) = back
                raise NotDone(about("hold.registered-again", "refuse", step, router=at.router, worker=at.worker))
        self._begun[(part, index)] = time.monotonic()
        self._drain(step, part, index)

    def _until_empty(self, step: DrainStep, part: e.Part, begun: float) -> tuple[Finding, ...]:
        """Wait until nothing is in flight, or as long as the plan allows; then it is held where the plan says so.

        An abort is not kept waiting: what was taken out is given back by the undo.
        """
        before: Scrape | None = None
        role = ROLES[step.at[0].kind] if step.at else None
        instance, routers = f"{step.service}@{step.host}", _routers(step)
        while True:
            self._list.check()
            now = self._list.routers.scrape(instance)
            looks = [self._list.look(at) for at in step.at]
            counts = [in_flight_at(seen.metrics, at.worker) for seen, at in zip(looks, step.at, strict=True)]
            found = judge_drained(before, now, counts, role)
            took_s = time.monotonic() - begun
            if found.empty:
                return (about("drain.empty", "note", step, routers=routers, took_s=took_s),)
            if now is None and self._is_dead(step):
                return (about("drain.no-process", "note", step, routers=routers),)
            if part == "do" and self._list.is_aborted():
                return (about("drain.aborted", "note", step, routers=routers, took_s=took_s),)
            if took_s >= step.deadline_s:
                return _over(step, part, found, looks, took_s)
            before = now or before
            time.sleep(min(IDLE_S, max(PAUSE_S, step.deadline_s - took_s)))

    def _is_dead(self, step: DrainStep) -> bool:
        """No process, so no request."""
        ask = UnitAsk(service=step.service, unit=step.unit)
        return self._list.hosts.at(step.host).observe([ask]).facts.units[0].incarnation.main_pid == 0

    def _admit(self, step: AdmitStep, part: e.Part, index: int) -> e.StepDone:
        notes: list[Finding] = []
        host_at = time.time()
        for at in step.at:
            seen = self._list.look(at)
            host_at = seen.at or host_at
            if self._list.registered(at, seen):
                continue
            recorded = self._list.recorded(step, at)
            for one in recorded:
                self._list.register(step, at, f"{part}-{index}", one)
            if not recorded:
                notes.append(about("admit.never-was", "note", step, router=at.router, worker=at.worker))
        return _done(step, part, index, host_at, tuple(notes))


def _over(step: DrainStep, part: e.Part, found: Drained, looks: list[Seen], took_s: float) -> tuple[Finding, ...]:
    """The deadline is over: how many are left, or that this is not known. An undo goes on: it brings back what failed.

    Raises: NotDone where the plan says to hold.
    """
    beside: list[Finding] = []
    if found.unknown:
        unknown = ", ".join(word.replace("_", " ") for word in found.unknown)
        beside.append(about("drain.unread", "note", step, unknown=unknown))
    ages = [(seen.oldest_over_s, at.router) for seen, at in zip(looks, step.at, strict=True) if seen.oldest_over_s]
    if ages:
        oldest_s, router = max(ages)
        beside.append(about("drain.oldest", "note", step, router=router, older_than_s=oldest_s))
    left, routers = found.left, _routers(step)
    if step.over == "hold" and part == "do":
        code = "hold.drain-over" if left is not None else "hold.drain-unknown"
        raise NotDone(about(code, "refuse", step, routers=routers, took_s=took_s, left=left), *beside)
    code = "drain.cuts" if left is not None else "drain.cuts-unknown"
    return about(code, "warn", step, routers=routers, took_s=took_s, left=left), *beside


def _as_found(step: Step, at: Registration, found: tuple[Listed, ...]) -> list[Finding]:
    """That the instance was not registered, or otherwise than the fleet file says."""
    if not found:
        return [about("drain.never-was", "note", step, router=at.router, worker=at.worker)]
    other = "; ".join(dict.fromkeys(text for one in found for text in differs(at, one)))
    return [about("drain.as-found", "note", step, router=at.router, differs=other)] if other else []


def _routers(step: Step) -> str:
    return ", ".join(dict.fromkeys(at.router for at in step.at))


def _done(
    step: Step, part: e.Part, index: int, at: float, findings: tuple[Finding, ...], found: tuple[Taken, ...] = ()
) -> e.StepDone:
    instance = f"{step.service}@{step.host}"
    return e.StepDone(
        part=part, index=index, step=step.kind, instance=instance, host_at=at, findings=findings, found=found
    )
