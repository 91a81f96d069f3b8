"""A restart that was issued, as the ledger tells it to whoever asks its gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policies import events as e
from policies.change import Change
from policies.facts import Incarnation
from policies.plan import RestartStep


@dataclass(frozen=True, slots=True)
class Issued:
    """The restart whose gates are asked, and what is known of it already.

    at: the host's clock. passed: gates that need not be said again. life, restarts: the incarnation that they saw, and
    systemd's count of automatic restarts then. taken_over: another worker issued it, so part of its time is over.
    unwell: the unit was dead or in a crash loop when it was restarted. systemd then goes on counting its automatic
    restarts, and may have begun one more of them in the moment before ours.
    by_hand: a person asks to look again, at whatever runs now; the boot time begins anew and is not a measured one.
    late: others were issued or asked since, so that it may have been ready for some time.
    """

    before: Incarnation
    at: float
    passed: frozenset[str] = frozenset()
    life: Incarnation | None = None
    restarts: int = 0
    taken_over: bool = False
    unwell: bool = False
    by_hand: bool = False
    late: bool = False


def told(entries: Sequence[e.Entry], change: Change, step: RestartStep, part: e.Part, index: int) -> Issued:
    """What the ledger says of a restart whose gates are to be asked.

    A person's `retry` or `undo` after the restart makes it a new question: what passed before is asked again.
    """
    progress = change.progress
    late = False
    passed: list[e.GatePassed] = []
    by_hand = unwell = False
    for event in (entry.event for entry in entries):
        if isinstance(event, e.StepDone) and (event.part, event.index) == (part, index):
            passed, by_hand, late = [], False, False
        elif isinstance(event, (e.StepDone, e.GatePassed)) and (event.part, event.index) != (part, index):
            late = True
        elif isinstance(event, (e.RetryAsked, e.UndoAsked)):
            passed, by_hand = [], True
        elif isinstance(event, e.GatePassed) and (event.part, event.index) == (part, index):
            passed.append(event)
        elif isinstance(event, e.GateFailed) and event.instance == f"{step.service}@{step.host}":
            unwell = True
    life = next((p for p in passed if p.gate == "incarnation"), None)
    restarts = life.verdict.findings[0].values.get("restarts") if life is not None else None
    before = progress.before(index) or step.before
    return Issued(
        before=before,
        at=progress.issued_at(index) or 0.0,
        passed=frozenset(p.gate for p in passed),
        life=life.incarnation if life is not None else None,
        restarts=restarts if isinstance(restarts, int) else 0,
        unwell=unwell or before.main_pid == 0,
        by_hand=by_hand,
        late=late,
    )
