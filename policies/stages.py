"""Stages: what of a plan is done together, and which of its steps is next.

A stage is the consecutive steps of one (wave, service). Its acts are all done first, so that its restarts boot side by
side; then the gates of each are asked, and at the end its instances are given back to their routers. A service that
the plan does not name in `rolling` has a stage for each of its instances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from policies.change import Change
from policies.plan import DrainStep, Plan, Step


@dataclass(frozen=True, slots=True)
class Stage:
    """steps: their places in plan.steps or plan.undo."""

    wave: int
    service: str
    steps: tuple[int, ...]


def stages_of(plan: Plan, steps: Sequence[Step]) -> tuple[Stage, ...]:
    """The stages of the plan's steps, or of those of its undo, in order."""
    together = {rolling.service for rolling in plan.rolling}

    def one(index: int) -> tuple[int, str, str]:
        step = steps[index]
        return step.wave, step.service, "" if step.service in together else step.host

    grouped = groupby(range(len(steps)), key=one)
    return tuple(Stage(wave, service, tuple(indices)) for (wave, service, _), indices in grouped)


def next_step(change: Change, *, well: bool) -> int | None:
    """The step that is to be done or, where it is done, whose gates are to be asked; None when all are through.

    well: proven and watched, so that old releases may go. A change that is to be aborted only waits for what it began.
    """
    plan, steps = change.plan, change.steps
    if plan is None:
        return None
    if change.abort is not None and not change.undoing:
        return unsettled(change)
    for stage in stages_of(plan, steps):
        due = [i for i in stage.steps if _is_due(change, i, well=well)]
        for admits in (False, True):
            turn = [i for i in due if (steps[i].kind == "admit") is admits]
            waiting = [i for i in turn if i not in change.progress.done] or [i for i in turn if open_gates(change, i)]
            if waiting:
                return waiting[0]
    return None


def stage_of(change: Change, index: int) -> Stage:
    """The stage that a step of the present part is in."""
    if change.plan is None:
        raise ValueError(f"{change.id} has no plan")
    return next(stage for stage in stages_of(change.plan, change.steps) if index in stage.steps)


def drained(change: Change, index: int) -> list[tuple[int, DrainStep]]:
    """The drains of the present part that were done for a step of the same stage and instance, with their places."""
    instance, steps = _instance(change.steps[index]), change.steps
    found: list[tuple[int, DrainStep]] = []
    for at in stage_of(change, index).steps:
        step = steps[at]
        if isinstance(step, DrainStep) and at in change.progress.done and _instance(step) == instance:
            found.append((at, step))
    return found


def is_untouched(change: Change, stage: Stage) -> bool:
    """Nothing of it was begun."""
    return not begun(change) & set(stage.steps)


def unsettled(change: Change) -> int | None:
    """The step that was begun and is not known to be done, or the first whose gates have not all passed."""
    progress = change.progress
    if progress.started is not None:
        return progress.started
    return next((i for i in sorted(progress.done) if open_gates(change, i)), None)


def open_gates(change: Change, index: int) -> tuple[str, ...]:
    """The gates of a step of the present part that have not passed yet."""
    return tuple(gate for gate in change.steps[index].gates if (index, gate) not in change.progress.gates)


def begun(change: Change) -> set[int]:
    """Steps of the present part that were begun."""
    progress = change.progress
    return {*progress.done, *(() if progress.started is None else (progress.started,))}


def is_undone(change: Change, undo: Step) -> bool:
    """Undo goes back over what was begun and leaves the rest as it is.

    An instance that was taken out at a router, or restarted, is given back; it is taken out only for a restart.
    """
    plan, do = change.plan, change.do
    if plan is None:
        return False
    indices = {*do.done, *(() if do.started is None else (do.started,))}
    kinds = {plan.steps[i].kind for i in indices if _instance(plan.steps[i]) == _instance(undo)}
    if undo.kind == "admit":
        return bool(kinds & {"drain", "restart", "admit"})
    return ("restart" if undo.kind == "drain" else undo.kind) in kinds


def at_work(change: Change) -> list[tuple[int, Step]]:
    """The steps of the part that is worked on, with their places; of an undo those that go back over what was begun."""
    return [(i, step) for i, step in enumerate(change.steps) if not change.undoing or is_undone(change, step)]


def _is_due(change: Change, index: int, *, well: bool) -> bool:
    step = change.steps[index]
    return (not change.undoing or is_undone(change, step)) and (well or step.kind != "prune")


def _instance(step: Step) -> str:
    return f"{step.service}@{step.host}"
