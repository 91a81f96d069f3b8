"""The ledger for one turn under one lease: a store that is away is waited for as long as the lease is surely held."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar
from uuid import uuid4

from policies import events as e
from policies.change import Change
from policies.errors import StoreUnavailable
from workers.lease import Held
from workers.ledger import Ledger

PAUSE_S = 0.2
T = TypeVar("T")


class Patient:
    """Raises everywhere: LeaseLost; StoreUnavailable when the store is there and still cannot do it."""

    def __init__(self, ledger: Ledger, lease: Held) -> None:
        self._ledger = ledger
        self._lease = lease

    def append(self, change: Change, event: e.Event) -> None:
        """Record one event behind those of `change`; once, also when an answer is lost on the way.

        Raises: LedgerConflict when the change has moved.
        """
        nonce = uuid4().hex
        self._reach(lambda: self._ledger.append(change.id, event, expect_version=change.version, nonce=nonce))

    def load(self, change_id: str) -> Change:
        """The change as its entries tell it."""
        return self._reach(lambda: self._ledger.load(change_id))

    def entries(self, change_id: str) -> list[e.Entry]:
        """Every entry of a change."""
        return self._reach(lambda: self._ledger.entries(change_id))

    def _reach(self, attempt: Callable[[], T]) -> T:
        until = time.monotonic() + 2 * self._lease.lease_s
        while True:
            self._lease.check()
            try:
                return attempt()
            except StoreUnavailable:
                if time.monotonic() > until:
                    raise
            time.sleep(PAUSE_S)
