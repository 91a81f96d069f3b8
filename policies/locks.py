"""Locks: a part of the fleet that nothing may be changed on, by whom, why and until when.

A lock stands in the way of every change that would touch one of its instances, whoever asks, its owner too: who wants
to change something opens it first. Undoing a change that is at work is no new change and is not stopped.

A rollback leaves a lock of its own, on deploys of its service only, until an approver confirms that what it took away
is fixed or will not be deployed again. A further rollback is not stopped by it, nor is anything that is no deploy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from policies.events.ends import Succeeded
from policies.events.entry import Entry
from policies.events.locks import Confirmed, Locked, RollbackLock, Unlocked
from policies.finding import Finding
from policies.fleet import Fleet
from policies.intents import Actor


@dataclass(frozen=True, slots=True)
class Lock:
    """One that was put on. Units: at is epoch seconds. rollback: what left it; None: a person put it on."""

    id: str
    at: float
    locked: Locked
    rollback: RollbackLock | None = None


def lock_id(change_id: str) -> str:
    """`rl-7` for the rollback `C-7`: the same whoever derives it, and however often."""
    return f"rl-{change_id.partition('-')[2]}"


def change_of(lock: str) -> str:
    """`C-7` for `rl-7`."""
    return f"C-{lock.partition('-')[2]}"


def standing(entries: Iterable[Entry], now: float) -> tuple[Lock, ...]:
    """The locks that hold at `now`, oldest first. entries: of all locks, in the order of the ledger."""
    locks: dict[str, Lock] = {}
    for entry in entries:
        if isinstance(entry.event, Locked):
            locks[entry.subject] = Lock(entry.subject, entry.at, entry.event)
        elif isinstance(entry.event, Succeeded) and entry.event.locked is not None:
            left = _left(entry, entry.event.locked)
            locks[left.id] = left
        elif isinstance(entry.event, Unlocked | Confirmed):
            locks.pop(entry.subject, None)
    return tuple(lock for lock in locks.values() if lock.locked.until is None or now < lock.locked.until)


def _left(entry: Entry, left: RollbackLock) -> Lock:
    put_on = Locked(
        scope=left.service,
        instances=left.instances,
        actor=left.owner,
        because=left.because or "",
        where=left.where,
    )
    return Lock(lock_id(entry.subject), entry.at, put_on, left)


def in_the_way(locks: Iterable[Lock], instances: Iterable[str], deploys: str | None = None) -> tuple[Finding, ...]:
    """A refusal for each lock that covers one of these instances. deploys: the service that gets another version."""
    wanted = set(instances)
    found: list[Finding] = []
    for lock in locks:
        if lock.rollback is not None:
            if deploys == lock.rollback.service:
                found.append(Finding(code="lock.after-rollback", effect="refuse", values=_values(lock)))
        elif wanted & set(lock.locked.instances):
            found.append(Finding(code="lock.in-the-way", effect="refuse", values=_values(lock)))
    return tuple(found)


def covered(fleet: Fleet, scope: str) -> tuple[str, ...]:
    """The instances of a service, a host or service@host; empty for what the fleet does not have."""
    every = [i for name in fleet.services for i in fleet.instances(name)]
    return tuple(i for i in every if scope in {i, *i.split("@", 1)})


def may_lock(actor: Actor, fleet: Fleet) -> Finding | None:
    """Why somebody may not lock: only who may ask for changes or approve them may. None: they may."""
    if _roles(fleet) & set(actor.roles):
        return None
    return Finding(code="lock.may-not", effect="refuse", values={"actor": actor.id})


def may_unlock(actor: Actor, lock: Lock, fleet: Fleet) -> Finding | None:
    """Why somebody may not open a lock: its owner and those who approve changes may. None: they may.

    The lock of a rollback asks for a confirmation, which is an approver's word alone.
    """
    approvers = {rule.by for rule in fleet.rules if rule.by is not None}
    owns = lock.rollback is None and actor.id == lock.locked.actor.id
    if owns or approvers & set(actor.roles):
        return None
    values = _values(lock) | {"actor": actor.id}
    if lock.rollback is not None:
        return Finding(code="lock.must-be-confirmed", effect="refuse", values=values)
    return Finding(code="lock.not-yours", effect="refuse", values=values)


def of_scope(locks: Sequence[Lock], scope: str) -> Lock | None:
    """The lock that somebody put on this very scope."""
    return next((lock for lock in locks if lock.rollback is None and lock.locked.scope == scope), None)


def to_open(locks: Sequence[Lock], name: str) -> Lock | None:
    """The lock that a word names, by its id or its scope: one that somebody put on before one that a rollback left."""
    found = [lock for lock in locks if name in {lock.id, lock.locked.scope}]
    return next((lock for lock in found if lock.rollback is None), found[0] if found else None)


def _roles(fleet: Fleet) -> set[str]:
    return {role for rule in fleet.rules for role in (rule.ask, rule.by) if role is not None}


def told_of(left: RollbackLock) -> dict[str, str | int | float | None]:
    """What is told of the lock of a rollback."""
    return {
        "taken": ", ".join(left.taken),
        "brought": ", ".join(left.brought) or None,
        "because": left.because[:300] if left.because else None,
    }


def confirmed(lock: str, word: Confirmed) -> dict[str, str | int | float | None]:
    """What an approver confirmed by opening one."""
    return {"lock": lock, "scope": word.service, "actor": word.actor.id, "taken": ", ".join(word.taken)}


def _values(lock: Lock) -> dict[str, str | int | float | None]:
    left = {} if lock.rollback is None else told_of(lock.rollback) | {"change": change_of(lock.id)}
    return {
        "lock": lock.id,
        "scope": lock.locked.scope,
        "owner": lock.locked.actor.id,
        "at": lock.at,
        "because": lock.locked.because[:300],
        "until": lock.locked.until,
        **left,
    }
