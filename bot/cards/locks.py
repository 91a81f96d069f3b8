"""Locks as sentences: what one closes, what a rollback leaves closed, and that it was opened."""

from __future__ import annotations

from bot.markup import Markup, joined
from bot.messages import say, sentence
from policies.events import Confirmed, Event, Locked, RollbackLock, Unlocked
from policies.finding import Finding
from policies.locks import confirmed, lock_id, told_of


def lock_line(name: str, locked: Locked, event: Event) -> Markup:
    """One entry of a lock, as its channel is told."""
    values: dict[str, str | int | float | None] = {
        "lock": name,
        "scope": locked.scope,
        "because": locked.because[:300],
        "owner": locked.actor.id,
        "instances": ", ".join(locked.instances),
    }
    if isinstance(event, Unlocked):
        opened = Finding(code="lock.unlocked", effect="note", values=values)
        return joined([sentence(opened), say("lock.opened", actor=event.actor.id)])
    return answered(Finding(code="lock.locked", effect="note", values={**values, "until": locked.until}))


def left_line(change_id: str, left: RollbackLock) -> Markup:
    """The lock that a rollback leaves, at its end."""
    values = told_of(left) | {"lock": lock_id(change_id), "scope": left.service, "owner": left.owner.id}
    return sentence(Finding(code="lock.left", effect="note", values=values))


def confirmed_line(name: str, word: Confirmed) -> Markup:
    """That such a lock was opened, and what was confirmed by it."""
    return sentence(Finding(code="lock.confirmed", effect="note", values=confirmed(name, word)))


def answered(finding: Finding) -> Markup:
    """What became of a word about locks; a lock that is put on is told with its end."""
    if finding.code != "lock.locked":
        return sentence(finding)
    until = finding.values.get("until")
    ending = say("lock.without-end") if until is None else say("lock.until", until=until)
    return joined([sentence(finding), ending])
