"""Fixtures that every test may ask for. A real Valkey server stands behind `store`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from hypothesis import HealthCheck, settings

from workers.live import EmbeddedStore
from workers.store import connect

# properties are tried on the same examples every time, however slow the machine is; to look for others:
# pytest --hypothesis-profile=explore
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", settings.get_profile("explore"), derandomize=True, database=None)
settings.load_profile("steady")


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


# the files that take longest begin first where several workers share the run, so that none is left with one at the end
LONGEST = (
    "test_demo_story",
    "test_crash_matrix",
    "test_rolling",
    "test_execute_loss",
    "test_execute_held",
    "test_execute_store",
)
FOLDERS = ("real", "scenarios", "sandbox", "workers", "bot", "policies", "house")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put long files first for `pytest -n`; alone, tests run in the order in which they are written."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: _place(item.path))


def _place(path: Path) -> tuple[int, int]:
    longest = LONGEST.index(path.stem) if path.stem in LONGEST else len(LONGEST)
    return longest, FOLDERS.index(path.parent.name) if path.parent.name in FOLDERS else -1
