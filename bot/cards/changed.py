"""What changed, as cards: the log of a time, the history of a knob, and what the watch found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bot.cards.answers import listed_lines, told
from bot.cards.kit import Card
from bot.markup import Markup, joined, link
from bot.messages import say, sentence, strict
from policies import events as e
from policies.change import Change
from policies.emergency import ratification
from policies.finding import Finding
from policies.fleet import Fleet
from workers.changed import Changed

Link = Callable[[str], str | None]
MOST_DIFFERENCES = 6
TOLD = {
    "edited": "changed.edited",
    "appeared": "changed.appeared",
    "gone": "changed.gone",
    "restarted": "changed.restarted",
    "auto_restarted": "changed.auto-restarted",
    "stopped": "changed.stopped",
    "started": "changed.started",
    "build": "changed.build",
}


def log_card(found: Changed, fleet: Fleet, now: float, address: Link) -> Card:
    """Everything that changed since a moment in its order, then what is watched and what is not."""
    lines = [(change.asked_at, _change(change, address)) for change in found.changes]
    lines += [(x.event.seen_at, outside_told(x.event)) for x in found.outside if isinstance(x.event, e.OutsideSeen)]
    told_lines = [line for _, line in sorted(lines, key=lambda pair: pair[0])]
    if not told_lines:
        told_lines.append(say("changed.nothing"))
    if found.more:
        told_lines.append(say("changed.more"))
    head = say("changed.head", since_s=now - found.since)
    return listed_lines(head, [*told_lines, *_covered(found, fleet)])


def ticket_card(ticket: str, changes: Sequence[Change], address: Link) -> Card:
    """Everything that was changed for one incident or ticket, in its order."""
    if not changes:
        return told(say("changed.ticket-none", ticket=ticket))
    head = say("changed.ticket-head", ticket=ticket, count=len(changes))
    return listed_lines(head, [_change(change, address) for change in changes])


def history_card(
    knob: str,
    entries: Sequence[e.Entry],
    changes: Callable[[str], Change],
    standings: Callable[[str], str | None],
    address: Link,
) -> Card:
    """A knob's timeline. changes: a change by its id; standings: what became of a suspicion."""
    if not entries:
        return told(say("changed.history-none", knob=knob))
    lines: list[Markup] = []
    for entry in entries:
        event = entry.event
        if isinstance(event, e.Asked):
            lines.append(_of_knob(changes(entry.subject), standings, address))
        elif isinstance(event, e.EvidenceRecorded):
            record = event.record
            lines.append(
                say(
                    "changed.evidence",
                    at=entry.at,
                    record=record.id,
                    value=record.value,
                    baseline=record.baseline,
                    klass=record.klass,
                    by=record.by,
                )
            )
        elif isinstance(event, e.OutsideSeen):
            lines.append(outside_told(event))
    return listed_lines(say("changed.history-head", knob=knob), lines)


def drift_lines(event: e.DriftSeen) -> list[Markup]:
    """What is not as it was left on an instance, as it is posted once."""
    if not event.found:
        return [say("drift.over", instance=event.instance)]
    found = [sentence(finding) for finding in event.found[:MOST_DIFFERENCES]]
    left = len(event.found) - MOST_DIFFERENCES
    more = [say("plan.more-lines", n=left)] if left > 0 else []
    return [say("drift.head", instance=event.instance), *found, *more, say("drift.next")]


def outside_line(event: e.OutsideSeen) -> Markup:
    """What the watch found, as it is posted once."""
    between = say("changed.between", since=event.since, seen_at=event.seen_at)
    return say("changed.posted", instance=event.instance, between=between, told=_differences(event.found))


def approvers(change: Change) -> list[Markup]:
    """Who approved it."""
    return [say("changed.approved", actor=given.actor.id) for given in change.approvals]


def _change(change: Change, address: Link) -> Markup:
    if change.asked is None:
        return say("talk.status-one", change=change.id, state=change.state.replace("_", " "))
    head = say(
        "changed.change",
        at=change.asked_at,
        change=link(address(change.id), change.id),
        state=change.state,
        said=change.asked.normalised[:120],
        actor=change.asked.actor.id,
    )
    ticket = change.asked.intent.ticket
    of_ticket = [say("changed.ticket", ticket=ticket)] if ticket is not None else []
    return joined([head, *of_ticket, *approvers(change), *_ratified(change)])


def _ratified(change: Change) -> list[Markup]:
    """That a second person has still to answer for it, or did not."""
    found = ratification(change)
    if found.word == "open":
        return [say("changed.to-be-ratified", until=found.until)]
    return [say("changed.not-ratified")] if found.word == "lapsed" else []


def _of_knob(change: Change, standings: Callable[[str], str | None], address: Link) -> Markup:
    parts = [_change(change, address)]
    last = change.last
    if isinstance(last, e.Succeeded):
        parts += values_told(last)
        if last.suspicion is not None:
            standing = standings(last.suspicion.id)
            parts.append(say("changed.suspicion", suspicion=last.suspicion.id, standing=standing or "open"))
    return joined(parts)


def values_told(last: e.Succeeded) -> list[Markup]:
    """What a change left on each instance."""
    values = [
        say("changed.values", instance=instance, was=last.was.get(instance), now=now)
        for instance, now in last.now.items()
    ]
    left = len(values) - MOST_DIFFERENCES
    return values[:MOST_DIFFERENCES] + ([say("plan.more-lines", n=left)] if left > 0 else [])


def outside_told(event: e.OutsideSeen) -> Markup:
    """What was found outside of changes, with when."""
    line = say("changed.outside", at=event.seen_at, instance=event.instance, told=_differences(event.found))
    return joined([line, say("changed.between", since=event.since, seen_at=event.seen_at)])


def _differences(found: Iterable[e.Difference]) -> Markup:
    each = list(found)
    told_each = [_difference(one) for one in each[:MOST_DIFFERENCES]]
    left = len(each) - MOST_DIFFERENCES
    return joined(told_each + ([say("plan.more-lines", n=left)] if left > 0 else []), ", ")


def _difference(one: e.Difference) -> Markup:
    values: dict[str, str | int | float | None] = {"name": one.name, "was": one.was, "now": one.now}
    return strict(Finding(code=TOLD[one.what], effect="note", values=values))


def _covered(found: Changed, fleet: Fleet) -> list[Markup]:
    """What is watched, what was not looked at yet, and what the inventory does not name."""
    lines: list[Markup] = []
    looked = {instance: seen.at for instance, seen in found.seen.items() if seen is not None}
    if looked:
        lines.append(say("changed.watched", instances=", ".join(looked), at=min(looked.values())))
    unseen = [instance for instance in found.seen if instance not in looked]
    if unseen:
        lines.append(say("changed.unwatched", instances=", ".join(unseen)))
    silent = [name for name, service in fleet.services.items() if service.server_info is None]
    if silent:
        lines.append(say("changed.no-build", services=", ".join(silent)))
    return [*lines, say("changed.not-covered")]
