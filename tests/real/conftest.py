"""The fleet that the tests of whole changes share; it is booted once and set back after each of them."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.fleet.fleet import ROLES, DemoFleet
from sandbox.fleet.units import unit_name
from tests.conftest import Store
from tests.real.stage import LEASE_TOKEN, Stage, make_fleet, pool_of
from tests.sandbox.fleet_client import booted
from workers.shells.ssh import SshPool


@pytest.fixture(scope="session")
def _fleet() -> Iterator[DemoFleet]:
    # a short path: the manager's socket has to fit into 107 bytes
    with tempfile.TemporaryDirectory(prefix="cb-") as folder, booted(lambda: make_fleet(Path(folder) / "f")) as fleet:
        yield fleet


@pytest.fixture(scope="session")
def _pristine(_fleet: DemoFleet) -> dict[str, str]:
    units = _fleet.hosts["gpu1"].manager.units
    return {role: (units / unit_name(role)).read_text() for role in ROLES}


@pytest.fixture(scope="session")
def _pool(_fleet: DemoFleet) -> Iterator[SshPool]:
    with pool_of(_fleet) as pool:
        yield pool


@pytest.fixture
def stage(_fleet: DemoFleet, _pristine: dict[str, str], _pool: SshPool, store: Store) -> Iterator[Stage]:
    """A healthy fleet with the knob at 512 in decode's unit, and an empty ledger."""
    store.redis.set(LEASE_TOKEN, int(time.time()))
    stage = Stage(_fleet, store.url, _pool)
    yield stage
    stage.close()
    stage.reset(_pristine)
