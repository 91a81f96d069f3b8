"""Locks: a part of the fleet that nothing may be changed on, by whom, why and until when.

A lock stands in the way of every change that would touch one of its instances, whoever asks, its owner too: who wants
to change something opens it first. Undoing a change that is at work is no new change and is not stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from policies.events.entry import Entry
from policies.events.locks import Locked, Unlocked
from policies.finding import Finding
from policies.fleet import Fleet
from policies.intents import Actor


@dataclass(frozen=True, slots=True)
class Lock:
    """One that was put on. Units: at is epoch seconds."""

    id: str
    at: float
    locked: Locked


def standing(entries: Iterable[Entry], now: float) -> tuple[Lock, ...]:
    """The locks that hold at `now`, oldest first. entries: of all locks, in the order of the ledger."""
    locks: dict[str, Lock] = {}
    for entry in entries:
        if isinstance(entry.event, Locked):
            locks[entry.subject] = Lock(entry.subject, entry.at, entry.event)
        elif isinstance(entry.event, Unlocked):
            locks.pop(entry.subject, None)
    return tuple(lock for lock in locks.values() if lock.locked.until is None or now < lock.locked.until)


def in_the_way(locks: Iterable[Lock], instances: Iterable[str]) -> tuple[Finding, ...]:
    """A refusal for each lock that covers one of these instances."""
    wanted = set(instances)
    return tuple(
        Finding(code="lock.in-the-way", effect="refuse", values=_values(lock))
        for lock in locks
        if wanted & set(lock.locked.instances)
    )


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
    """Why somebody may not open a lock: its owner and those who approve changes may. None: they may."""
    approvers = {rule.by for rule in fleet.rules if rule.by is not None}
    if actor.id == lock.locked.actor.id or approvers & set(actor.roles):
        return None
    values = _values(lock) | {"actor": actor.id}
    return Finding(code="lock.not-yours", effect="refuse", values=values)


def of_scope(locks: Sequence[Lock], scope: str) -> Lock | None:
    """The lock that was put on this very scope."""
    return next((lock for lock in locks if lock.locked.scope == scope), None)


def _roles(fleet: Fleet) -> set[str]:
    return {role for rule in fleet.rules for role in (rule.ask, rule.by) if role is not None}


def _values(lock: Lock) -> dict[str, str | int | float | None]:
    return {
        "lock": lock.id,
        "scope": lock.locked.scope,
        "owner": lock.locked.actor.id,
        "at": lock.at,
        "because": lock.locked.because[:300],
        "until": lock.locked.until,
    }
