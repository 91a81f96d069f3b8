"""The line of changes that wait for their instances: first come, first served, by the moment of approval.

A change that was begun and has not ended keeps its instances, also while it waits for a person. Behind it, and behind
every change that was approved earlier, waits whatever shares an instance with them; the rest runs beside. Nobody waits
for somebody who was approved later, so there is always one who may begin, unless a person has to decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from policies.change import Change, State
from policies.plan import Plan, RestartStep
from policies.stages import at_work, open_gates, stages_of

MANY = 10**9  # restarts of nothing
BEGUN: frozenset[State] = frozenset({"running", "undoing", "unknown", "held"})


@dataclass(frozen=True, slots=True)
class Eta:
    """How long something still takes, from recorded restarts. n: the fewest that an instance has. Units: seconds."""

    left_s: float
    n: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where an approved change stands. position: 1 may begin; else one more than have to end before.

    behind: those ahead that share an instance with it, in their order; on: what they share.
    held: the change ahead that waits for a person. eta: None as soon as one ahead has no recorded restarts, or is held.
    """

    change: str
    position: int
    behind: tuple[str, ...] = ()
    on: tuple[str, ...] = ()
    held: str | None = None
    eta: Eta | None = None


@dataclass(frozen=True, slots=True)
class Stand:
    """A change as the line sees it. approved_at None: it was begun. work: how long it still takes, once it may."""

    change: str
    instances: tuple[str, ...]
    approved_at: float | None = None
    held: bool = False
    work: Eta | None = None


def places(changes: Iterable[Change], now: float, watch_s: float) -> dict[str, Place]:
    """The place of each approved change, in the order of the line. watch_s: how long a change is watched at its end."""
    return lined_up(stand for change in changes if (stand := _stand(change, now, watch_s)) is not None)


def would_wait(plan: Plan, change_id: str, changes: Iterable[Change], now: float, watch_s: float) -> Place:
    """The place that a plan would have if it were approved at this moment."""
    stands = [stand for change in changes if change.id != change_id and (stand := _stand(change, now, watch_s))]
    return lined_up([*stands, Stand(change_id, plan.leased, approved_at=inf)])[change_id]


def lined_up(stands: Iterable[Stand]) -> dict[str, Place]:
    """The place of each that was not begun, in the order of the line."""
    ahead: list[Stand] = []
    before: dict[str, frozenset[str]] = {}
    stuck: dict[str, str | None] = {}
    ends: dict[str, Eta | None] = {}
    found: dict[str, Place] = {}
    for stand in sorted(stands, key=_turn):
        name = stand.change
        direct = [] if stand.approved_at is None else [one for one in ahead if _share(one, stand)]
        before[name] = frozenset(other for one in direct for other in (one.change, *before[one.change]))
        stuck[name] = name if stand.held else next((who for one in direct if (who := stuck[one.change])), None)
        wait = _latest([ends[one.change] for one in direct])
        ends[name] = _sum(wait, stand.work)
        ahead.append(stand)
        if stand.approved_at is not None:
            found[name] = Place(
                change=name,
                position=len(before[name]) + 1,
                behind=tuple(one.change for one in direct),
                on=tuple(i for i in stand.instances if any(i in one.instances for one in direct)),
                held=stuck[name],
                eta=wait if direct else None,
            )
    return found


def to_go(change: Change, now: float, watch_s: float) -> Eta | None:
    """How long a change still takes; None without recorded restarts of all its instances, or where a person decides."""
    plan = change.plan
    if plan is None or plan.estimate is None or change.state in {"held", "unknown"}:
        return None
    medians, total_s = dict(plan.estimate.medians), 0.0
    steps = dict(at_work(change))
    for stage in stages_of(plan, change.steps):
        open_now = [i for i in stage.steps if isinstance(steps.get(i), RestartStep) and not _passed(change, i)]
        names = [f"{steps[i].service}@{steps[i].host}" for i in open_now]
        if any(name not in medians for name in names):
            return None
        issued = [at for at in map(change.progress.issued_at, open_now) if at is not None]
        spent_s = now - min(issued) if issued else 0.0
        total_s += max(0.0, max((medians[name] for name in names), default=0.0) - max(0.0, spent_s))
    if not change.undoing and not change.canary_passed:
        watch_first_s = max((r.canary.watch_s for r in plan.rolling if r.canary is not None), default=0.0)
        total_s += watch_first_s if change.canary is None else max(0.0, change.canary.until - now)
    if not change.undoing and not change.baked:
        total_s += watch_s if change.bake is None else max(0.0, change.bake.until - now)
    return Eta(total_s, plan.estimate.n)


def _passed(change: Change, index: int) -> bool:
    return index in change.progress.done and not open_gates(change, index)


def _stand(change: Change, now: float, watch_s: float) -> Stand | None:
    """None for a change that neither waits nor was begun."""
    if change.plan is None or change.state not in BEGUN | {"approved"}:
        return None
    return Stand(
        change.id,
        change.plan.leased,
        approved_at=change.approved_at if change.state == "approved" else None,
        held=change.state == "held",
        work=to_go(change, now, watch_s),
    )


def _latest(ends: list[Eta | None]) -> Eta | None:
    """When the last of them ends; at once when there is none."""
    known = [end for end in ends if end is not None]
    if len(known) < len(ends):
        return None
    return Eta(max((end.left_s for end in known), default=0.0), min((end.n for end in known), default=MANY))


def _sum(wait: Eta | None, work: Eta | None) -> Eta | None:
    return None if wait is None or work is None else Eta(wait.left_s + work.left_s, min(wait.n, work.n))


def _share(one: Stand, other: Stand) -> bool:
    return not set(one.instances).isdisjoint(other.instances)


def _turn(stand: Stand) -> tuple[float, int, str]:
    """What was begun comes first; then by approval, and of two approved in one moment the one asked first."""
    return (-inf if stand.approved_at is None else stand.approved_at, len(stand.change), stand.change)
