"""Locks in the ledger: put on, opened, and those that hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from policies import events as e
from policies import locks
from policies.errors import LedgerConflict
from policies.finding import Finding
from policies.fleet import Fleet
from policies.intents import Actor, LockScope, UnlockScope, Where
from policies.locks import Lock
from workers.ledger import Ledger


@dataclass(frozen=True, slots=True)
class LockAnswer:
    """What became of a word about locks. lock: the one that it is about; None where nothing was recorded."""

    finding: Finding
    lock: Lock | None = None


class Locks:
    """`clock` gives epoch seconds. Raises everywhere: StoreUnavailable."""

    def __init__(self, ledger: Ledger, fleet: Fleet, clock: Callable[[], float]) -> None:
        self._ledger = ledger
        self._fleet = fleet
        self._clock = clock

    def standing(self) -> tuple[Lock, ...]:
        """The locks that hold now, oldest first."""
        return locks.standing(self._ledger.index("locks"), self._clock())

    def lock(self, word: LockScope, actor: Actor, where: Where, key: str | None = None) -> LockAnswer:
        """Close a scope. key: said again under it, because whoever heard it ended before the answer, it is one word."""
        for lock in self.standing():
            if key is not None and self._ledger.written(lock.id, key) is not None:
                return LockAnswer(_told("lock.locked", lock), lock)
        if (refused := locks.may_lock(actor, self._fleet)) is not None:
            return LockAnswer(refused)
        there = locks.of_scope(self.standing(), word.scope)
        if there is not None:
            return LockAnswer(_told("lock.there-already", there, "refuse"), there)
        until = None if word.for_s is None else self._clock() + word.for_s
        event = e.Locked(
            scope=word.scope,
            instances=locks.covered(self._fleet, word.scope),
            actor=actor,
            because=word.because,
            where=where,
            until=until,
        )
        entry = self._ledger.append(self._ledger.new_id("lk"), event, expect_version=0, nonce=key)
        lock = Lock(entry.subject, entry.at, event)
        return LockAnswer(_told("lock.locked", lock), lock)

    def unlock(self, word: UnlockScope, actor: Actor, key: str | None = None) -> LockAnswer:
        """Open the lock of a scope, or the one of that id."""
        for entry in self._ledger.index("locks"):
            if isinstance(entry.event, e.Locked) and word.scope in {entry.subject, entry.event.scope}:
                done = self._ledger.written(entry.subject, key) if key is not None else None
                if done is not None:
                    lock = Lock(entry.subject, entry.at, entry.event)
                    return LockAnswer(_told("lock.unlocked", lock), lock)
            elif isinstance(entry.event, e.Confirmed) and key is not None and self._ledger.written(entry.subject, key):
                return LockAnswer(_confirmed(entry.subject, entry.event))
        found = locks.to_open(self.standing(), word.scope)
        if found is None:
            held = ", ".join(f"{one.id} on {one.locked.scope}" for one in self.standing()) or "none"
            return LockAnswer(Finding(code="lock.none", effect="refuse", values={"scope": word.scope, "held": held}))
        if (refused := locks.may_unlock(actor, found, self._fleet)) is not None:
            return LockAnswer(refused, found)
        if found.rollback is not None:
            return self._confirm(found, found.rollback, actor, key)
        try:
            self._ledger.append(found.id, e.Unlocked(actor=actor), expect_version=1, nonce=key)
        except LedgerConflict:
            return LockAnswer(_told("lock.open-already", found, "refuse"), found)
        return LockAnswer(_told("lock.unlocked", found), found)

    def _confirm(self, lock: Lock, left: e.RollbackLock, actor: Actor, key: str | None) -> LockAnswer:
        word = e.Confirmed(actor=actor, service=left.service, taken=left.taken)
        try:
            self._ledger.append(lock.id, word, expect_version=0, nonce=key)
        except LedgerConflict:
            return LockAnswer(_told("lock.open-already", lock, "refuse"), lock)
        return LockAnswer(_confirmed(lock.id, word), lock)


def _confirmed(lock: str, word: e.Confirmed) -> Finding:
    return Finding(code="lock.confirmed", effect="allow", values=locks.confirmed(lock, word))


def _told(code: str, lock: Lock, effect: str = "allow") -> Finding:
    values: dict[str, str | int | float | None] = {
        "lock": lock.id,
        "scope": lock.locked.scope,
        "owner": lock.locked.actor.id,
        "because": lock.locked.because[:300],
        "until": lock.locked.until,
        "instances": ", ".join(lock.locked.instances),
    }
    return Finding.model_validate({"code": code, "effect": effect, "values": values})
