"""Judging and copying the ledger from a terminal, whether or not clawback runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr, ValidationError

from policies.errors import SettingsError
from policies.events import Entry
from policies.finding import Finding
from policies.fleet import Fleet
from workers.client import Client
from workers.drawn import Drawn
from workers.ledger import Ledger, stored
from workers.live import EmbeddedStore, running_url
from workers.queue import Doorbell
from workers.store import connect


@contextmanager
def store_url(redis_url: SecretStr | str | None, data: Path | None) -> Iterator[SecretStr | str]:
    """The Redis to look into: the named one, else the embedded one of `data`, which is started if it does not run.

    Raises: SettingsError when there is none.
    """
    if redis_url:
        yield redis_url
        return
    if data is None or not (data / "appendonlydir").is_dir():
        raise SettingsError(
            f"there is no ledger in `{data}`" if data else "neither a Redis nor a data folder is named",
            hint="set REDIS_URL or CLAWBACK_DATA",
        )
    running = running_url(data)
    if running:
        yield running
        return
    with EmbeddedStore(data) as server:
        yield server.url


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
def copies(redis_url: SecretStr | str | None, data: Path | None = None) -> Iterator[Copies]:
    """The store, for as long as its copies are compared.

    Raises: SettingsError, StoreUnavailable.
    """
    with store_url(redis_url, data) as url, connect(url) as client:
        yield Copies(Ledger(client, time.time), Drawn(client))


def verify(redis_url: SecretStr | str | None, data: Path | None = None) -> list[Finding]:
    """What is wrong with the ledger; empty when it is whole.

    Raises: SettingsError, StoreUnavailable.
    """
    with store_url(redis_url, data) as url, connect(url) as client:
        return Ledger(client, time.time).verify()


def export(redis_url: SecretStr | str | None, data: Path | None = None) -> Iterator[str]:
    """Every entry as one line of canonical JSON.

    Raises: SettingsError, StoreUnavailable.
    """
    with store_url(redis_url, data) as url, connect(url) as client:
        yield from Ledger(client, time.time).export()
