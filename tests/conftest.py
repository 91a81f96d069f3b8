"""Fixtures that every test may ask for. A real Valkey server stands behind `store`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis

from workers.live import EmbeddedStore
from workers.store import connect


@dataclass(frozen=True, slots=True)
class Store:
    """An empty database of this test alone."""

    url: str
    redis: redis.Redis
    server: EmbeddedStore


@pytest.fixture(scope="session")
def _valkey() -> Iterator[EmbeddedStore]:
    with tempfile.TemporaryDirectory(prefix="cb-") as folder, EmbeddedStore(Path(folder) / "data") as server:
        yield server


@pytest.fixture
def store(_valkey: EmbeddedStore) -> Iterator[Store]:
    """A real Valkey, flushed. Gives `url` (for other processes) and `redis` (a client)."""
    _valkey.revive()
    client = connect(_valkey.url)
    client.flushall()
    yield Store(_valkey.url, client, _valkey)
    client.close()
