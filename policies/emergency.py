"""An emergency: somebody who is alone on call does without an approver or in a freeze, and answers for it afterwards.

It is asked for with `emergency because "..."` and opens nothing but what is named in `Override`. Who may not ask still
may not, and whatever is refused because of what is on a host stays refused. The plan is shown, and its requester
confirms it with a click on what was shown. Then a second person ratifies within a time, or it is taken back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from policies.change import OVERRIDDEN, Change
from policies.events.emergency import Override
from policies.events.ends import KeepChosen
from policies.finding import Finding
from policies.intents import Actor, Deploy, KnobIntent, Restart, Rollback, SetKnob, UnsetKnob

Values = dict[str, str | int | float | None]
REMIND_BEFORE_S = 900.0  # before the end; at half time where less than twice of it is given
OURS = Actor(id="clawback", name="clawback", source="terminal")  # who takes back what nobody ratified
AT_WORK = frozenset({"approved", "running", "undoing", "unknown"})


@dataclass(frozen=True, slots=True)
class Ratification:
    """What became of an override.

    word: none (nothing was overridden), open, ratified, lapsed, or moot (undone or not begun: nothing is in force).
    until: epoch seconds. by: who ratified.
    """

    word: Literal["none", "open", "ratified", "lapsed", "moot"]
    until: float = 0.0
    by: Actor | None = None


NONE = Ratification("none")


def alone(change: Change, actor: Actor) -> bool:
    """Whether somebody would confirm, or confirmed, what they asked for themselves, as an emergency lets them."""
    planned = change.planned
    asked = change.asked
    return planned is not None and planned.emergency is not None and asked is not None and asked.actor.id == actor.id


def overridden(change: Change, actor: Actor) -> Override | None:
    """What this person's confirmation overrides, where it is the last one that was needed."""
    planned = change.planned
    if planned is None or planned.emergency is None:
        return None
    others = {one.actor.id for one in change.approvals} - {actor.id}
    missing = max(0, planned.approvals - len(others)) if alone(change, actor) else 0
    found = planned.emergency.model_copy(update={"approvals": missing, "role": planned.by if missing else None})
    return found if found.anything else None


def ratification(change: Change) -> Ratification:
    """What became of the override of a change."""
    found = change.override
    if found is None or change.asked is None:
        return NONE
    until = change.override_at + found.within_s
    others = [one.actor for one in change.approvals if one.actor.id != change.asked.actor.id]
    seconds = [actor for actor in others if found.ratify_by in actor.roles]
    kept = change.last if isinstance(change.last, KeepChosen) else None
    if kept is not None and found.ratify_by in kept.actor.roles:
        seconds.append(kept.actor)
    if change.ratified is not None or seconds:
        return Ratification("ratified", until, change.ratified.actor if change.ratified is not None else seconds[0])
    if change.lapsed is not None:
        return Ratification("lapsed", until)
    return Ratification("open" if change.state in OVERRIDDEN else "moot", until)


def remind_at(change: Change) -> float | None:
    """When those who may ratify are reminded, once; None when there is nothing to remind of. Units: epoch seconds."""
    found = ratification(change)
    if found.word != "open" or change.ratify_reminded or change.override is None:
        return None
    return max(found.until - REMIND_BEFORE_S, found.until - change.override.within_s / 2)


def lapses(change: Change, now: float) -> bool:
    """Whether the time to ratify is over and it can be settled: what is at work is waited for."""
    found = ratification(change)
    return found.word == "open" and now >= found.until and change.state not in AT_WORK


def way_back(change: Change, newest: str | None) -> KnobIntent | Deploy | Finding:
    """What takes the change back, or why nothing does. newest: whose success is the last of its knob or service."""
    asked, plan = change.asked, change.plan
    values: Values = {"change": change.id}
    if asked is None or plan is None or change.state != "succeeded":
        return Finding(code="ratify.did-not-succeed", effect="warn", values=values)
    if isinstance(asked.intent, Restart):
        return Finding(code="ratify.restart-stays", effect="warn", values=values)
    if isinstance(asked.intent, Rollback):
        return Finding(code="ratify.rollback-stays", effect="warn", values=values)
    if newest is not None and newest != change.id:
        return Finding(code="ratify.changed-since", effect="warn", values=values | {"newest": newest})
    found = {target.now for target in plan.targets}
    if len(found) != 1 or (plan.deploy is not None and None in found):
        told = ", ".join(f"{t.instance} {t.now or 'none'}" for t in plan.targets)
        return Finding(code="ratify.no-one-before", effect="warn", values={"change": change.id, "found": told})
    before = found.pop()
    because = f"{change.id} was not ratified in time"
    if isinstance(asked.intent, Deploy):
        return Deploy(service=asked.intent.service, ref=before or "", order=change.order, because=because)
    common = {"knob": asked.intent.knob, "scope": asked.intent.scope, "order": change.order, "because": because}
    if before is None:
        return UnsetKnob.model_validate(common)
    return SetKnob.model_validate(common | {"value": before})
