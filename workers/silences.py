"""Keeps the silences of an Alertmanager as the ledger wants them: made while a change works, ended when it does not.

Taken again and again by one process of all. Whoever ends in between leaves a silence whose comment names its change:
the next turn finds it before it makes another one. Work never waits for this, and no silence of others is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import redis
import structlog

from policies import events as e
from policies.change import Change
from policies.errors import AlertmanagerFailed, NotFound
from policies.events.silences import Doing, Why
from policies.fleet import Fleet
from policies.silences import (
    Matcher,
    Silenced,
    Standing,
    comment,
    is_short,
    mark,
    matchers,
    recorded,
    silences_id,
    told_of,
    until,
    wanted,
)
from workers.alertmanager import ALIVE, Alertmanager, Silence
from workers.ledger import Ledger, text_of
from workers.line import open_changes
from workers.store import translated

LOG = structlog.get_logger(__name__)
OPEN = "clawback:silenced"  # changes that may have a silence; one that is forgotten here ends by itself
FORGET_S = 86_400.0  # what was left at an Alertmanager that never answers has ended by itself
AGAIN_S = 5.0  # before an Alertmanager that did not answer is asked again


class Silences:
    """One for each process. `clock` gives epoch seconds; `ring` has a subject drawn. Raises: StoreUnavailable."""

    def __init__(
        self,
        client: redis.Redis,
        ledger: Ledger,
        fleet: Fleet,
        server: Alertmanager,
        clock: Callable[[], float],
        ring: Callable[[str], object],
    ) -> None:
        self._redis = client
        self._ledger = ledger
        self._fleet = fleet
        self._server = server
        self._clock = clock
        self._ring = ring
        self._not_before = 0.0

    def round(self) -> None:
        """Look at every change that works or has a silence."""
        if self._clock() < self._not_before:
            return
        working = {change.id: change for change in open_changes(self._ledger) if wanted(change, self._fleet)}
        with translated():
            open_before = {text_of(name) for name in self._redis.smembers(OPEN)}
            if new := working.keys() - open_before:
                self._redis.sadd(OPEN, *new)  # noted before anything is made
        for name in sorted(working.keys() | open_before, key=lambda one: (len(one), one)):
            try:
                change = working.get(name) or self._ledger.load(name)
            except NotFound:
                change = Change(name)
            self._bring(change)

    def _bring(self, change: Change) -> None:
        """One change: what is missing is made, what is short prolonged, what is over ended."""
        services, now = wanted(change, self._fleet), self._clock()
        before = self._recorded(change)
        now_standing = before.standing
        missing = tuple(s for s in services if s not in now_standing and s not in before.given_up)
        short = [s for s, one in now_standing.items() if s in services and is_short(one, self._fleet, now)]
        over = {service: one for service, one in now_standing.items() if service not in services}
        self._try(change, "make", missing, lambda service: self._make(change, service))
        self._try(change, "prolong", short, lambda service: self._prolong(change, service, now_standing[service]))
        self._try(change, "end", tuple(over), lambda service: self._end(change, service, over[service]), over)
        if not services and not self._recorded(change).standing and self._left_nothing(change):
            with translated():
                self._redis.srem(OPEN, change.id)

    def _left_nothing(self, change: Change) -> bool:
        """Take away what was made and never recorded, by a keeper that ended or of which the answer was lost.

        False while that cannot be asked.
        """
        seen = self._recorded(change)
        unsure = [s for s in told_of(change, self._fleet) if s not in seen.made or "make" in seen.failed]
        try:
            for service in unsure:
                there = self._server.find(mark(self._fleet, change.id, service))
                if there is not None:
                    self._server.end(there.id)
                    self._ended(change, service, Standing(there.id, self._clock()), "ended")
        except AlertmanagerFailed as error:
            self._not_before = self._clock() + AGAIN_S
            LOG.info("the alertmanager was not asked for what is left", change=change.id, why=error.message)
            return change.ended_at is not None and self._clock() - change.ended_at > FORGET_S
        return True

    def _try(
        self,
        change: Change,
        doing: Doing,
        services: tuple[str, ...] | list[str],
        act: Callable[[str], None],
        standing: Mapping[str, Standing] | None = None,
    ) -> None:
        """Do it for each service; that it failed is said once a change, and tried again later."""
        for number, service in enumerate(services):
            try:
                act(service)
            except AlertmanagerFailed as error:
                self._not_before = self._clock() + AGAIN_S
                LOG.info("the alertmanager did not do it", change=change.id, doing=doing, why=error.message)
                if doing not in self._recorded(change).failed:
                    left = tuple(services[number:])
                    ends = max((standing[one].until for one in left), default=None) if standing else None
                    self._record(change, e.SilenceFailed(doing=doing, services=left, error=error.message, until=ends))
                return

    def _make(self, change: Change, service: str) -> None:
        conditions = matchers(self._fleet, change, service)
        ends = until(change, self._fleet, self._clock())
        there = self._server.find(mark(self._fleet, change.id, service))
        if there is not None:  # whoever made it ended before it was recorded
            silence = self._server.prolong(there, ends)
        else:
            silence = self._server.make(conditions, comment(self._fleet, change, service), ends)
        told = tuple(_spelled(one) for one in conditions)
        self._record(change, e.SilenceMade(service=service, silence=silence, until=ends, matchers=told))

    def _prolong(self, change: Change, service: str, standing: Standing) -> None:
        there = self._ours(change, service, standing)
        if not isinstance(there, Silence):
            self._ended(change, service, standing, there)
            return
        ends = until(change, self._fleet, self._clock())
        silence = self._server.prolong(there, ends)
        self._record(change, e.SilenceProlonged(service=service, silence=silence, until=ends))

    def _end(self, change: Change, service: str, standing: Standing) -> None:
        # one whose time is over needs no answer of a server that may be away
        there: Silence | Why = "over" if standing.until <= self._clock() else self._ours(change, service, standing)
        if not isinstance(there, Silence):
            self._ended(change, service, standing, there)
            return
        self._server.end(there.id)
        self._ended(change, service, standing, "held" if change.state == "held" else "ended")

    def _ours(self, change: Change, service: str, standing: Standing) -> Silence | Why:
        """The silence as it is there; or why it is none that this program may touch any more."""
        found = self._server.get(standing.silence)
        if found is not None and found.state in ALIVE and found.is_ours(mark(self._fleet, change.id, service)):
            return found
        if standing.until <= self._clock():
            return "over"
        return "lost" if found is None else "gone"

    def _ended(self, change: Change, service: str, standing: Standing, why: Why) -> None:
        self._record(change, e.SilenceEnded(service=service, silence=standing.silence, why=why))

    def _recorded(self, change: Change) -> Silenced:
        return recorded(self._ledger.entries(silences_id(change.id)))

    def _record(self, change: Change, event: e.Event) -> None:
        subject = silences_id(change.id)
        self._ledger.append(subject, event, expect_version=len(self._ledger.entries(subject)))
        self._ring(subject)


def _spelled(one: Matcher) -> str:
    return f'{one.name}{"=~" if one.regex else "="}"{one.value}"'
