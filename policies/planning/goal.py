"""What a knob intent comes down to: which value on which instances. Restore and revert look into the knob's history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policies.case import IntentWord
from policies.events import Succeeded
from policies.finding import Finding
from policies.fleet import Fleet, Knob
from policies.intents import KnobIntent, RestoreKnob, SetKnob, UnsetKnob

TAKES_AWAY = ("revert", "unset")


@dataclass(frozen=True, slots=True)
class Goal:
    """`word` is what rules match on. `value` None: not in the environment. `instances` are service@host."""

    knob: Knob
    word: IntentWord
    value: str | None
    instances: tuple[str, ...]
    orders: tuple[str, ...]
    notes: tuple[Finding, ...] = ()


def goal(intent: KnobIntent, fleet: Fleet, history: Sequence[Succeeded], live: dict[str, str | None]) -> Goal | Finding:
    """The goal, or the one finding that says why the intent has none.

    history: the knob's succeeded changes, oldest first. live: the value that each instance's unit gives now.
    """
    knob = fleet.knobs.get(intent.knob)
    if knob is None:
        values: dict[str, str | int | float | None] = {"knob": intent.knob, "known": ", ".join(fleet.knobs)}
        return Finding(code="plan.no-such-knob", effect="refuse", values=values)
    instances = _scoped(knob, fleet, intent.scope)
    if isinstance(instances, Finding):
        return instances
    orders = knob.restarts
    if intent.order is not None:
        if intent.order not in orders:
            values = {"order": intent.order, "knob": knob.name, "orders": ", ".join(orders)}
            return Finding(code="plan.no-such-order", effect="refuse", values=values)
        orders = (intent.order,)
    if isinstance(intent, SetKnob):
        return Goal(knob, "set", intent.value, instances, orders)
    if isinstance(intent, UnsetKnob):
        return Goal(knob, "unset", None, instances, orders)
    if isinstance(intent, RestoreKnob):
        return _restore(intent, knob, instances, orders, history)
    last = history[-1] if history else None
    if last is not None and last.word in TAKES_AWAY and all(last.now.get(i) == live.get(i) for i in instances):
        # going back on a revert gives a value, and giving one has to be asked for by name: evidence is judged then
        values = {"knob": knob.name, "word": last.word}
        return Finding(code="plan.already-taken-away", effect="refuse", values=values)
    before = _before_last(instances, history, live)
    if len(before) > 1:
        values = {"knob": knob.name, "found": ", ".join(f"{i}: {v or 'unset'}" for i, v in before)}
        return Finding(code="plan.reverts-to-two-values", effect="refuse", values=values)
    return Goal(knob, "revert", before[0][1], instances, orders)


def _scoped(knob: Knob, fleet: Fleet, scope: str | None) -> tuple[str, ...] | Finding:
    everywhere = tuple(i for service in knob.on for i in fleet.instances(service))
    if scope is None:
        return everywhere
    readings = {i: (i, *i.split("@", 1)) for i in everywhere}
    chosen = tuple(i for i, names in readings.items() if scope in names)
    if chosen and scope in fleet.services and scope in fleet.hosts:
        values: dict[str, str | int | float | None] = {"scope": scope}
        return Finding(code="plan.scope-is-two-things", effect="refuse", values=values)
    if not chosen:
        values = {"scope": scope, "knob": knob.name, "instances": ", ".join(everywhere)}
        return Finding(code="plan.scope-without-knob", effect="refuse", values=values)
    return chosen


def _restore(
    intent: RestoreKnob,
    knob: Knob,
    instances: tuple[str, ...],
    orders: tuple[str, ...],
    history: Sequence[Succeeded],
) -> Goal | Finding:
    lived = {v for done in history for values in (done.was, done.now) for i, v in values.items() if i in instances}
    if intent.value is not None:
        if intent.value in lived:
            return Goal(knob, "restore", intent.value, instances, orders)
        values: dict[str, str | int | float | None] = {"knob": knob.name, "value": intent.value}
        note = Finding(code="plan.restore-is-a-set", effect="note", values=values)
        return Goal(knob, "set", intent.value, instances, orders, (note,))
    for done in reversed(history):
        taken = {done.was.get(i) for i in instances if done.was.get(i) != done.now.get(i)} - {None}
        if len(taken) == 1:
            return Goal(knob, "restore", taken.pop(), instances, orders)
        if taken:
            break
    return Finding(code="plan.nothing-to-restore", effect="refuse", values={"knob": knob.name})


def _before_last(
    instances: tuple[str, ...], history: Sequence[Succeeded], live: dict[str, str | None]
) -> list[tuple[str, str | None]]:
    """The value before the change that brought today's, once for each different one, with an instance that had it.

    Unset where no change of ours brought today's value.
    """
    for done in reversed(history):
        if all(done.now.get(i) == live.get(i) for i in instances):
            first_with: dict[str | None, str] = {}
            for i in instances:
                first_with.setdefault(done.was.get(i), i)
            return [(i, value) for value, i in first_with.items()]
    return [(instances[0], None)]
