"""Silences at an Alertmanager: which alerts of a change are silenced, until when, and what is recorded of that.

Pure: `workers.silences` asks the Alertmanager. What is recorded stands under `si-N` for the change `C-N`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from policies import events as e
from policies.change import Change, State
from policies.fleet import Fleet
from policies.line import to_go
from policies.model import Model

AT_WORK: frozenset[State] = frozenset({"running", "undoing", "unknown"})
UNKNOWN_S = 900.0  # for how long where no restarts are recorded that would tell; it is prolonged anyhow
AUTHOR = "clawback"
SAID = 300
HOLES = ("{host}", "{address}")


class Matcher(Model):
    """One condition on a label, as the Alertmanager knows it; all of a silence hold together."""

    name: str
    value: str
    regex: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """A silence that was made and not ended. Units: epoch seconds."""

    silence: str
    until: float


@dataclass(frozen=True, slots=True)
class Silenced:
    """What is recorded of a change's silences: those that stand, by service, and what it was said that it failed.

    given_up: services whose silence was ended at the Alertmanager: that word holds until the change has ended.
    made: services of which one was recorded.
    """

    standing: Mapping[str, Standing] = field(default_factory=dict)
    failed: frozenset[str] = frozenset()
    given_up: frozenset[str] = frozenset()
    made: frozenset[str] = frozenset()


def silences_id(change_id: str) -> str:
    """The subject under which the silences of a change are recorded."""
    return f"si-{change_id.partition('-')[2]}"


def recorded(entries: Iterable[e.Entry]) -> Silenced:
    """The fold of everything that is recorded under it."""
    standing: dict[str, Standing] = {}
    failed: set[str] = set()
    given_up: set[str] = set()
    made: set[str] = set()
    for entry in entries:
        event = entry.event
        if isinstance(event, (e.SilenceMade, e.SilenceProlonged)):
            standing[event.service] = Standing(event.silence, event.until)
            made.add(event.service)
        elif isinstance(event, e.SilenceEnded):
            standing.pop(event.service, None)
            if event.why == "gone":
                given_up.add(event.service)
        elif isinstance(event, e.SilenceFailed):
            failed.add(event.doing)
    return Silenced(standing, frozenset(failed), frozenset(given_up), frozenset(made))


def wanted(change: Change, fleet: Fleet) -> tuple[str, ...]:
    """The services whose alerts are to be silenced at this moment, as far as the fleet file says how."""
    return told_of(change, fleet) if change.state in AT_WORK else ()


def told_of(change: Change, fleet: Fleet) -> tuple[str, ...]:
    """The services of a change of which the fleet file says how their alerts are known."""
    if change.plan is None or fleet.alertmanager is None:
        return ()
    touched = dict.fromkeys(instance.partition("@")[0] for instance in change.plan.services)
    return tuple(service for service in touched if service in fleet.alertmanager.match)


def until(change: Change, fleet: Fleet, now: float) -> float:
    """When a silence ends if nobody ends or prolongs it: the time that the change still takes, and the margin."""
    margin_s = fleet.alertmanager.margin_s if fleet.alertmanager is not None else 0.0
    left = to_go(change, now, fleet.timing.bake_s)
    return now + (left.left_s if left is not None else UNKNOWN_S) + margin_s


def is_short(standing: Standing, fleet: Fleet, now: float) -> bool:
    """Whether it has to be prolonged: less than half of the margin is left."""
    return fleet.alertmanager is not None and standing.until - now < fleet.alertmanager.margin_s / 2


def matchers(fleet: Fleet, change: Change, service: str) -> tuple[Matcher, ...]:
    """What the alerts of a service have in common, for the instances that the change touches."""
    if fleet.alertmanager is None or change.plan is None:
        return ()
    names = [i.partition("@")[2] for i in change.plan.services if i.partition("@")[0] == service]
    found = []
    for label, text in fleet.alertmanager.match[service].items():
        if not any(hole in text for hole in HOLES):
            found.append(Matcher(name=label, value=text))
            continue
        filled = dict.fromkeys(
            text.replace("{host}", name).replace("{address}", fleet.hosts[name].address) for name in names
        )
        one = next(iter(filled))
        many = "|".join(re.escape(value) for value in filled)
        found.append(Matcher(name=label, value=one if len(filled) == 1 else many, regex=len(filled) > 1))
    return tuple(found)


def mark(fleet: Fleet, change_id: str, service: str) -> str:
    """How the comment of a silence begins: ours is known by it, also when we ended before we recorded it."""
    return f"[clawback {fleet.name} {change_id} {service}]"


def comment(fleet: Fleet, change: Change, service: str) -> str:
    """The whole comment: for those who look at the Alertmanager."""
    asked = change.asked
    parts = [mark(fleet, change.id, service)]
    if asked is not None:
        ticket = asked.intent.ticket
        parts += [f"ticket {ticket}"] if ticket is not None and ticket not in asked.normalised[:SAID] else []
        parts.append(f"{asked.normalised[:SAID]} asked by {asked.actor.name or asked.actor.id}")
    return ", ".join(parts)
