"""How far the work is, on one line: a bar, the step, what is waited for since when, and when it will be over.

The end is counted from recorded restarts of the same instances only; none recorded, none printed. It is a moment and
not a countdown, so that a card that nobody edits stays true.
"""

from __future__ import annotations

from bot.cards.rolling import present_wave
from bot.cards.story import instance, named
from bot.markup import Markup, joined
from bot.messages import say
from policies.canaries import watches_due
from policies.change import Change
from policies.plan import RestartStep, Step
from policies.stages import at_work, next_step, open_gates, stages_of

MOST_BAR = 20
GATES = {
    "incarnation": "step.gate-incarnation",
    "port": "step.gate-port",
    "health": "step.gate-health",
    "environment": "step.gate-environment",
    "reported": "step.gate-reported",
    "version": "step.gate-version",
    "contract": "step.gate-contract",
    "admitted": "step.gate-admitted",
    "canary": "step.gate-canary",
}
NOW = {
    "write": "step.now-write",
    "switch": "step.now-switch",
    "command": "step.now-command",
    "prune": "step.now-prune",
    "drain": "step.now-drain",
    "admit": "step.now-admit",
}


def progress(change: Change, last_at: float | None = None) -> Markup:
    """`▰▰▱▱ step 3 of 4: decode restart, waiting for health since 21:26:06 · about 1 min 20 s to go ...`.

    last_at: when the last thing happened, epoch seconds; without it the end is told only while a restart is waited for.
    """
    steps = at_work(change)
    if not steps:
        return Markup("")
    complete = sum(1 for index, _ in steps if _complete(change, index))
    # old releases go behind the watch
    current = next_step(change, well=change.baked or change.progress.started is not None)
    canary = change.canary if watches_due(change, current) else None
    if canary is not None:
        number, said = complete, say("step.now-canary", instances=", ".join(canary.readings), until=canary.until)
    elif current is None:
        number, said = len(steps), say("step.now-finishing")
        if change.bake is not None and not change.baked and not change.undoing:
            said = say("step.now-watching", until=change.bake.until)
    else:
        number, said = min(complete + 1, len(steps)), _now(change, current, change.steps[current])
    code = "step.progress-undo" if change.undoing else "step.progress"
    line = say(code, bar=bar(complete, len(steps)), n=number, total=len(steps), said=said)
    return joined([line, *present_wave(change, current), *_to_go(change, steps, last_at)])


def bar(done: int, total: int) -> str:
    """One sign a step, or a share where there are many."""
    if total > MOST_BAR:
        done, total = done * MOST_BAR // total, MOST_BAR
    return "▰" * done + "▱" * (total - done)


def _complete(change: Change, index: int) -> bool:
    return index in change.progress.done and not open_gates(change, index)


def _now(change: Change, index: int, step: Step) -> Markup:
    name = named(change.plan, instance(step))
    if step.kind == "admit" and index in change.progress.done:
        return say("step.now-admitting", instance=name, gate=say(GATES["admitted"]))
    if step.kind != "restart":
        return say(NOW[step.kind], instance=name)
    waiting = open_gates(change, index)
    since = change.progress.issued_at(index)
    if index not in change.progress.done or since is None or not waiting:
        return say("step.now-restart", instance=name)
    # the gates before health pass together with it, in one wait on the host
    gate = "health" if "health" in waiting else waiting[0]
    return say("step.now-waiting", instance=name, gate=say(GATES[gate]), since=since)


def _to_go(change: Change, steps: list[tuple[int, Step]], last_at: float | None) -> list[Markup]:
    """How long the restarts that are left take, counted from the last restart or the last thing that happened.

    Those of one stage boot side by side.
    """
    plan = change.plan
    if plan is None or plan.estimate is None or change.state not in {"running", "undoing"}:
        return []
    medians = dict(plan.estimate.medians)
    left = {i: instance(step) for i, step in steps if isinstance(step, RestartStep) and not _complete(change, i)}
    if not left or any(name not in medians for name in left.values()):
        return []
    together = [[i for i in stage.steps if i in left] for stage in stages_of(plan, change.steps)]
    together = [indices for indices in together if indices]
    left_s = sum(max(medians[left[i]] for i in indices) for indices in together)
    issued = [at for at in map(change.progress.issued_at, together[0]) if at is not None]
    since = max(issued) if issued else last_at
    if since is None:
        return []
    return [say("step.to-go", left_s=left_s, until=since + left_s, n=plan.estimate.n)]
