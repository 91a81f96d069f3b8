"""Locks as sentences: what one closes, and that it was opened."""

from __future__ import annotations

from bot.markup import Markup, joined
from bot.messages import say, sentence
from policies.events import Event, Locked, Unlocked
from policies.finding import Finding


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


def answered(finding: Finding) -> Markup:
    """What became of a word about locks; a lock that is put on is told with its end."""
    if finding.code != "lock.locked":
        return sentence(finding)
    until = finding.values.get("until")
    ending = say("lock.without-end") if until is None else say("lock.until", until=until)
    return joined([sentence(finding), ending])
