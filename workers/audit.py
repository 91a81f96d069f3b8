"""Judging and copying the ledger from a terminal, whether or not clawback runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import SecretStr

from policies.errors import SettingsError
from policies.finding import Finding
from workers.ledger import Ledger
from workers.live import EmbeddedStore, running_url
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
