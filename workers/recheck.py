"""The last look before the first act: is what was approved still what would be done?"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from policies import events as e
from policies.approvals import still_valid
from policies.change import Change
from policies.errors import HostAnswerLost, HostKeyRefused, HostUnreachable, OpsError, StoreUnavailable
from policies.facts import Incarnation
from policies.plan import Plan
from policies.replan import differences, rebased
from workers.trouble import no_plan

if TYPE_CHECKING:
    from workers.planner import Outcome
    from workers.wiring import Wiring

# Pauses before asking hosts again, in seconds. Nothing was begun, so a person is told soon.
ASK_AGAIN_S = (0.2, 0.5, 1.0, 2.0)


def recheck(wiring: Wiring, change: Change) -> e.Refused | e.Replan | e.Rebased | None:
    """Roles, expiry and every fact of the digest as they are now; None when the change may start as it was approved.

    It may start, too, when only processes differ that changes of ours restarted since: with the plan of now then.

    A host that cannot be asked is a refusal: nothing was done, and what would be done is not known.
    """
    plan = change.plan
    if change.asked is None or plan is None:
        raise RuntimeError(f"{change.id} is approved without having been asked for and planned")
    lapsed = still_valid(change, wiring.fleet, wiring.clock())
    if lapsed is not None:
        return e.Refused(findings=(lapsed,))
    try:
        outcome = _outcome(wiring, change.asked, change.planned)
    except StoreUnavailable:
        raise
    except OpsError as error:
        return e.Refused(findings=(no_plan(error),))
    now = next((p for p in outcome.plans if p.order == plan.order), None)
    if now is None:
        return e.Replan(findings=outcome.findings)
    if now.digest == plan.digest:
        return None
    restarted = rebased(plan, now, _left(wiring, plan, change.planned_at))
    if restarted is not None:
        return e.Rebased(plan=now, findings=restarted)
    return e.Replan(findings=differences(plan, now))


def _left(wiring: Wiring, plan: Plan, since: float) -> dict[str, tuple[str, Incarnation]]:
    """By instance, the change that restarted it last, and the process that it left healthy. Those before are old."""
    ledger, found = wiring.ledger, dict[str, tuple[str, Incarnation]]()
    boots = (entry for instance in plan.services for entry in ledger.index(f"boot:{instance}"))
    changes = dict.fromkeys(entry.subject for entry in boots if entry.at >= since)
    # of replicas that boot side by side one boot is timed, and all are found healthy
    gates = [entry for change in changes for entry in ledger.entries(change) if entry.at >= since]
    for entry in sorted(gates, key=lambda one: one.seq):
        event = entry.event
        if isinstance(event, e.GatePassed) and event.gate == "health" and event.incarnation is not None:
            found[event.instance] = (entry.subject, event.incarnation)
    return found


def _outcome(wiring: Wiring, asked: e.Asked, before: e.Planned | None) -> Outcome:
    for pause_s in ASK_AGAIN_S:
        try:
            return wiring.planner.plan(asked, before)
        except HostKeyRefused:
            raise
        except (HostUnreachable, HostAnswerLost):
            time.sleep(pause_s)
    return wiring.planner.plan(asked, before)
