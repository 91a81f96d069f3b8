"""Judging and copying the ledger from a terminal, whether or not clawback runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr, ValidationError

from policies.events import Entry
from policies.finding import Finding
from policies.fleet import Fleet
from workers.archive.check import compare
from workers.client import Client
from workers.drawn import Drawn
from workers.ledger import Ledger, stored
from workers.queue import Doorbell
from workers.rebuild import rebuild
from workers.store import connect
from workers.stores import opened_store


@dataclass(frozen=True, slots=True)
class Copies:
    """The ledger and what is kept beside it about its drawings."""

    ledger: Ledger
    drawn: Drawn

    def client(self, fleet: Fleet) -> Client:
        """The bot's door to this ledger."""
        return Client(self.ledger, Doorbell(self.ledger.redis), fleet, time.time)

    def verify(self) -> list[Finding]:
        """What is wrong with the ledger itself."""
        return self.ledger.verify()

    def archived(self, folder: Path) -> list[Finding]:
        """What is wrong with the archive; empty where there is none."""
        return compare(self.ledger.redis, folder)

    def rebuild(self, folder: Path, *, from_archive: bool) -> tuple[Finding, ...]:
        """Make everything anew that the entries tell; what was done, or why nothing was.

        Raises: StoreUnavailable, ArchiveBroken.
        """
        return rebuild(self.ledger.redis, folder, from_archive=from_archive)

    def entries(self) -> list[Entry]:
        """Every entry that can be read, in order, whatever else is wrong with the ledger: `verify` tells that."""
        return [entry for _, entry in self._readable(0)]

    def since(self, seq: int) -> list[Entry]:
        """The readable entries behind a place in the ledger."""
        return [entry for number, entry in self._readable(seq) if number > seq]

    def _readable(self, after: int) -> Iterator[tuple[int, Entry]]:
        for number, text in stored(self.ledger.redis, after=after):
            with suppress(ValidationError):
                yield number, Entry.model_validate_json(text)


@contextmanager
def copies(redis_url: SecretStr | None, data: Path, *, new: bool = False) -> Iterator[Copies]:
    """The store, for as long as its copies are compared. new: start an empty one where there was none.

    Raises: SettingsError, StoreUnavailable.
    """
    with opened_store(redis_url, data, new=new) as url, connect(url) as client:
        yield Copies(Ledger(client, time.time), Drawn(client))


def export(redis_url: SecretStr | None, data: Path) -> Iterator[str]:
    """Every entry as one line of canonical JSON.

    Raises: SettingsError, StoreUnavailable.
    """
    with opened_store(redis_url, data) as url, connect(url) as client:
        yield from Ledger(client, time.time).export()
