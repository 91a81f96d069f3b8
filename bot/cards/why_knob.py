"""`/knob why NAME`: where a value comes from: the changes, people, evidence, suspicions and statements behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bot.cards import evidence
from bot.cards.changed import Link, approvers, outside_told, values_told
from bot.cards.kit import Card, made, section
from bot.cards.suspicion import settled
from bot.cards.why import statement_line
from bot.markup import Markup, joined, link
from bot.messages import say
from policies import events as e
from policies.applicability import Standing
from policies.change import Change
from policies.evidence import Record
from policies.suspicion import Standing as Became
from policies.suspicion import Suspicion
from workers.statements import Told

MOST_OUTSIDE = 4
MOST_SAID = 6


def why_knob_card(
    knob: str,
    entries: Sequence[e.Entry],
    changes: Callable[[str], Change],
    records: tuple[Record, ...],
    standings: tuple[Standing, ...] | Markup,
    suspicions: Sequence[tuple[Suspicion, Became]],
    statements: Callable[[str], Sequence[Told]],
    at: float,
    address: Link,
) -> Card:
    """entries: of the knob, oldest first. changes, statements: a change by its id, and what was stated about it."""
    asked = [changes(entry.subject) for entry in entries if isinstance(entry.event, e.Asked)]
    done = [(change, last) for change in asked if isinstance(last := change.last, e.Succeeded)]
    parts: list[list[Markup]] = [[Markup(f"*{say('why.knob-head', knob=knob)}*")]]
    value: str | None = None
    if done:
        change, last = done[-1]
        value = next(iter(dict.fromkeys(last.now.values())), None) if len(set(last.now.values())) == 1 else None
        parts[0] += _came(change, last, address)
        if len(done) > 1:
            before, ended = done[-2]
            parts[0].append(joined([say("why.knob-before"), *_came(before, ended, address)]))
    else:
        parts[0].append(say("why.knob-unmanaged", knob=knob))
    for wanted in dict.fromkeys([value, *(suspicion.value for suspicion, _ in suspicions)]):
        if wanted is not None:
            known = () if isinstance(standings, Markup) else standings
            parts.append(evidence.lines(records, knob, wanted, at, known))
    if isinstance(standings, Markup):
        parts.append([standings])
    parts.append([_suspicion(suspicion, became) for suspicion, became in suspicions])
    told = [statement_line(one) for change, _ in done for one in statements(change.id)]
    parts.append(told[-MOST_SAID:])
    since = done[-1][0].ended_at or 0.0 if done else 0.0
    later = [x.event for x in entries if isinstance(x.event, e.OutsideSeen) and x.at > since]
    parts.append([outside_told(event) for event in later[-MOST_OUTSIDE:]])
    lines = [line for part in parts for line in part]
    return made("\n".join(lines), [section(*part) for part in parts if part])


def _came(change: Change, last: e.Succeeded, address: Link) -> list[Markup]:
    if change.asked is None:
        return []
    head = say(
        "why.knob-came",
        at=change.ended_at or change.asked_at,
        change=link(address(change.id), change.id),
        said=change.asked.normalised[:200],
        actor=change.asked.actor.id,
    )
    return [joined([head, *approvers(change), *values_told(last)])]


def _suspicion(suspicion: Suspicion, became: Became) -> Markup:
    if became.word != "open":
        return settled(suspicion, became)
    return say("suspicion.opened", suspicion=suspicion.id, said=say("cause.not-established"))
