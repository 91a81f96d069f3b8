"""Is nothing in flight any more on an instance that its routers send nothing to?

Every reading has to say so: the engine's batch and queues, those between prefill and decode, its HTTP requests, and
counters that stand still between two looks. What a router still counts at it speaks against it; that a router counts
nothing says nothing (see `policies.routers`), and need not: what a router has not finished here is an HTTP request of
the engine. A reading that is missing is not 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policies.metrics.engine import Role
from policies.metrics.samples import Scrape
from policies.states.judge import Look, judge_state
from policies.states.work import HTTP_ACTIVE, bounds, is_engine, work_of

ROLES: dict[str, Role] = {"regular": "unified", "prefill": "prefill", "decode": "decode"}
METRICS, COUNTERS = "metrics", "counters"


@dataclass(frozen=True, slots=True)
class Drained:
    """empty: every reading says so. left: requests in flight as far as the readings tell; None where they do not.

    unknown: the readings that do not say, `counters` where it is not shown that they stand still.
    """

    empty: bool
    left: int | None
    unknown: tuple[str, ...] = ()


def judge_drained(
    earlier: Scrape | None, now: Scrape | None, at_routers: Sequence[float | None], role: Role | None = None
) -> Drained:
    """From two scrapes of the engine, and what each router counts at it. role: where the engine does not say."""
    counted = sum(number for number in at_routers if number is not None)
    if now is None or not is_engine(now):
        return Drained(False, round(counted) if counted else None, (METRICS,))
    state = judge_state(None if earlier is None else Look(earlier), Look(now), role=role)
    work = work_of(now, None, role)
    batch = [most for name, number in work.own.items() if name != HTTP_ACTIVE for most in _most(bounds(number))]
    http = _most(bounds(work.own[HTTP_ACTIVE]))
    left = max(sum(batch), *http, counted) if http else max(sum(batch), counted)
    unknown = work.unknown()
    if state.is_in("idle") and not counted:
        return Drained(True, 0)
    if not left and not unknown:
        unknown = (COUNTERS,)
    return Drained(False, round(left) if left or not unknown else None, unknown)


def _most(known: tuple[float, float] | None) -> list[float]:
    return [] if known is None else [known[1]]
