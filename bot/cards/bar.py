"""How far the work is, on one line: a bar, the step, what is waited for since when, and when it will be over.

The end is counted from recorded restarts of the same instances only; none recorded, none printed. It is a moment and
not a countdown, so that a card that nobody edits stays true.
"""

from __future__ import annotations

from bot.cards.story import instance
from bot.markup import Markup, joined
from bot.messages import say
from policies.change import Change
from policies.plan import RestartStep, Step

MOST_BAR = 20
GATES = {
    "incarnation": "step.gate-incarnation",
    "port": "step.gate-port",
    "health": "step.gate-health",
    "environment": "step.gate-environment",
    "reported": "step.gate-reported",
    "version": "step.gate-version",
    "canary": "step.gate-canary",
}
NOW = {
    "write": "step.now-write",
    "switch": "step.now-switch",
    "command": "step.now-command",
    "prune": "step.now-prune",
}


def progress(change: Change, last_at: float | None = None) -> Markup:
    """`▰▰▱▱ step 3 of 4: decode restart, waiting for health since 21:26:06 · about 1 min 20 s to go ...`.

    last_at: when the last thing happened, epoch seconds; without it the end is told only while a restart is waited for.
    """
    at_work = _at_work(change)
    if not at_work:
        return Markup("")
    complete = sum(1 for index, step in at_work if _complete(change, index, step))
    current = next((number for number, (index, step) in enumerate(at_work) if not _complete(change, index, step)), None)
    pruning = current is not None and at_work[current][1].kind == "prune"  # behind the watch
    if current is None or (pruning and change.progress.started is None and not change.baked):
        number, said = len(at_work), say("step.now-finishing")
        if change.bake is not None and not change.baked and not change.undoing:
            said = say("step.now-watching", until=change.bake.until)
    else:
        number, said = current + 1, _now(change, *at_work[current])
    code = "step.progress-undo" if change.undoing else "step.progress"
    line = say(code, bar=bar(complete, len(at_work)), n=number, total=len(at_work), said=said)
    return joined([line, *_to_go(change, at_work, last_at)])


def bar(done: int, total: int) -> str:
    """One sign a step, or a share where there are many."""
    if total > MOST_BAR:
        done, total = done * MOST_BAR // total, MOST_BAR
    return "▰" * done + "▱" * (total - done)


def _at_work(change: Change) -> list[tuple[int, Step]]:
    """The steps of the part that is worked on; an undo goes back over what was begun only."""
    steps = list(enumerate(change.steps))
    if not change.undoing or change.plan is None:
        return steps
    begun = {*change.do.done, *(() if change.do.started is None else (change.do.started,))}
    touched = {(step.kind, instance(step)) for step in (change.plan.steps[i] for i in begun)}
    return [(index, step) for index, step in steps if (step.kind, instance(step)) in touched]


def _complete(change: Change, index: int, step: Step) -> bool:
    return index in change.progress.done and not _open_gates(change, index, step)


def _open_gates(change: Change, index: int, step: Step) -> list[str]:
    passed = {gate for at, gate in change.progress.gates if at == index}
    return [gate for gate in step.gates if gate not in passed]


def _now(change: Change, index: int, step: Step) -> Markup:
    name = _name(change, step)
    if step.kind != "restart":
        return say(NOW[step.kind], instance=name)
    waiting = _open_gates(change, index, step)
    since = change.progress.issued_at
    if index not in change.progress.done or since is None or not waiting:
        return say("step.now-restart", instance=name)
    # the gates before health pass together with it, in one wait on the host
    gate = "health" if "health" in waiting else waiting[0]
    return say("step.now-waiting", instance=name, gate=say(GATES[gate]), since=since)


def _name(change: Change, step: Step) -> str:
    """The service alone where it runs on one host only."""
    hosts = {s.host for s in change.steps if s.service == step.service}
    return instance(step) if len(hosts) > 1 else step.service


def _to_go(change: Change, at_work: list[tuple[int, Step]], last_at: float | None) -> list[Markup]:
    """How long the restarts that are left take, counted from the last restart or the last thing that happened."""
    plan = change.plan
    if plan is None or plan.estimate is None or change.state not in {"running", "undoing"}:
        return []
    medians = dict(plan.estimate.medians)
    left = [(i, s) for i, s in at_work if isinstance(s, RestartStep) and not _complete(change, i, s)]
    if not left or any(instance(step) not in medians for _, step in left):
        return []
    left_s = sum(medians[instance(step)] for _, step in left)
    issued = change.progress.issued_at if left[0][0] in change.progress.done else None
    since = issued if issued is not None else last_at
    if since is None:
        return []
    return [say("step.to-go", left_s=left_s, until=since + left_s, n=plan.estimate.n)]
