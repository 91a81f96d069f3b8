"""The watch: looks at every instance now and then, and records what happened there that no change of ours did.

Compared with the look before, which is kept in the store. What is found is recorded once, also when this process ends
between the record and the note of it. An instance on which a change works is left alone until that has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import redis
import structlog
from pydantic import ValidationError

from policies import events as e
from policies.change import WORKING, Change
from policies.errors import LedgerConflict, OpsError
from policies.facts import UnitFacts
from policies.fleet import Fleet
from policies.model import Model
from policies.outside import Snapshot, differences, not_ours
from workers.hosts import Hosts
from workers.ledger import Ledger, text_of
from workers.store import translated

LOG = structlog.get_logger(__name__)
SEEN = "clawback:seen:"
RECENT = 200  # changes that may account for a difference: looks are a minute apart
SKEW_S = 120.0  # between the clock of a host and that of whoever recorded the end of a change


class Found(Model):
    """What is being recorded under `name`, and the look that takes the place of the one before then."""

    name: str
    event: e.OutsideSeen
    then: Snapshot


class Noted(Model):
    """What is kept of an instance. found: written before it is recorded, so that it is recorded once."""

    snapshot: Snapshot
    found: Found | None = None


class Seen:
    """The last look at each instance. Raises everywhere: StoreUnavailable."""

    def __init__(self, client: redis.Redis, fleet: Fleet) -> None:
        self._redis = client
        self._fleet = fleet

    def all(self) -> Mapping[str, Snapshot | None]:
        """By instance of the fleet; None: there was none yet."""
        instances = [i for name in self._fleet.services for i in self._fleet.instances(name)]
        return {i: noted.snapshot if (noted := self.get(i)) is not None else None for i in instances}

    def get(self, instance: str) -> Noted | None:
        """Of one instance."""
        with translated():
            found = self._redis.get(SEEN + instance)
        try:
            return None if found is None else Noted.model_validate_json(text_of(found))
        except ValidationError:
            return None  # of another version: looking begins anew

    def put(self, instance: str, noted: Noted) -> None:
        """Keep it in place of the one before."""
        with translated():
            self._redis.set(SEEN + instance, noted.model_dump_json())


class Watch:
    """Reads hosts; writes to the ledger and to the store only. Raises everywhere: StoreUnavailable."""

    def __init__(self, client: redis.Redis, ledger: Ledger, fleet: Fleet, hosts: Callable[[], Hosts]) -> None:
        self._seen = Seen(client, fleet)
        self._ledger = ledger
        self._fleet = fleet
        self._hosts = hosts

    def round(self) -> list[str]:
        """Look at every instance once; the names of what was recorded. A host that is away is left out."""
        units: dict[str, UnitFacts] = {}
        for host in self._fleet.hosts:
            here = [i for name in self._fleet.services for i in self._fleet.instances(name) if i.endswith(f"@{host}")]
            if not here:
                continue
            try:
                units |= self._hosts().observe(here, []).units
            except OpsError as error:
                LOG.info("a host was not looked at", host=host, why=error.message)
        # asked after the hosts: a change that has begun since is met here
        working = self._working()
        return [name for i, unit in units.items() if i not in working for name in self._compare(i, unit)]

    def _compare(self, instance: str, unit: UnitFacts) -> list[str]:
        now = Snapshot.of(unit)
        noted = self._seen.get(instance)
        if noted is None:
            self._seen.put(instance, Noted(snapshot=now))
            return []
        recorded = []
        if noted.found is not None:  # whoever found it ended before it was done
            recorded.append(self._record(instance, noted.found))
            noted = Noted(snapshot=noted.found.then)
        before = noted.snapshot
        found = differences(before, now)
        if found:
            entries = [x for change in self._acted(instance, before.at) for x in self._ledger.entries(change)]
            found = not_ours(found, entries, instance, now)
        then = now.kept_from(before)
        if not found:
            self._seen.put(instance, Noted(snapshot=then))
            return recorded
        event = e.OutsideSeen(instance=instance, since=before.at, seen_at=now.at, found=found)
        one = Found(name=self._ledger.new_id("out"), event=event, then=then)
        self._seen.put(instance, Noted(snapshot=before, found=one))
        return [*recorded, self._record(instance, one)]

    def _record(self, instance: str, found: Found) -> str:
        """Record it, unless that was done already, and go on from the look that found it."""
        with suppress(LedgerConflict):
            self._ledger.append(found.name, found.event, expect_version=0)
        self._seen.put(instance, Noted(snapshot=found.then))
        return found.name

    def _working(self) -> set[str]:
        busy: set[str] = set()
        for name in self._ledger.open_changes():
            change = self._ledger.load(name)
            if change.state in WORKING:
                busy |= set(_touched(change))
        return busy

    def _acted(self, instance: str, since: float) -> list[str]:
        """Changes that may have acted on the instance since that look, held ones included."""
        recent = [entry.subject for entry in self._ledger.index("changes")[-RECENT:]]
        names = dict.fromkeys([*recent, *self._ledger.open_changes()])
        changes = [self._ledger.load(name) for name in names]
        return [
            c.id for c in changes if instance in _touched(c) and (c.ended_at is None or c.ended_at >= since - SKEW_S)
        ]


def _touched(change: Change) -> tuple[str, ...]:
    """Instances that a change may act on."""
    return change.plan.services if change.plan is not None else ()
