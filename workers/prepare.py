"""The job `prepare`: observe, plan, decide, record what came of it. Reads hosts, changes nothing there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from policies import events as e
from policies.blame import Blame
from policies.errors import LedgerConflict, OpsError, StoreUnavailable
from policies.finding import Finding
from policies.fleet import Fleet
from policies.intents import RevertKnob
from workers.blaming import blame
from workers.line import ahead_of
from workers.trouble import no_plan

if TYPE_CHECKING:
    from workers.wiring import Wiring


LOG = structlog.get_logger(__name__)


def prepare(wiring: Wiring, change_id: str) -> None:
    """Bring a change from `asked` to planned, refused or nothing_to_do; doing it twice does nothing."""
    change = wiring.ledger.load(change_id)
    if change.state != "asked" or change.asked is None:
        return
    event = _planned(wiring, change.asked, change_id)
    try:
        wiring.ledger.append(change_id, event, expect_version=change.version)
    except LedgerConflict:
        return  # another worker prepared it at the same time; its plan stands
    if isinstance(event, e.Planned) and event.approvals == 0 and event.emergency is None and not event.dry:
        plan = event.plans[0]
        given = e.ApprovalGiven(actor=change.asked.actor, order=plan.order, digest=plan.digest, complete=True)
        with suppress(LedgerConflict):  # somebody denied or aborted it in this moment
            wiring.ledger.append(change_id, given, expect_version=change.version + 1)
        wiring.doorbell.ring("act", "execute", change_id)
    wiring.doorbell.ring("narrate", "draw", change_id)


def _planned(wiring: Wiring, asked: e.Asked, change_id: str) -> e.Event:
    if asked.fleet_sha256 != wiring.fleet.sha256:
        values: dict[str, str | int | float | None] = {"asked": asked.fleet_sha256, "now": wiring.fleet.sha256}
        return e.Refused(findings=(Finding(code="plan.fleet-file-changed", effect="refuse", values=values),))
    try:
        with ThreadPoolExecutor(1, thread_name_prefix="blame") as aside:
            blamed = aside.submit(_blame, wiring, asked, change_id)
            outcome = wiring.planner.plan(asked)
    except StoreUnavailable:
        raise  # a refusal could not be recorded either; it is prepared again when Redis is back
    except OpsError as error:
        return e.Refused(findings=(no_plan(error),))
    if outcome.nothing_to_do:
        return e.NothingToDo(findings=outcome.findings)
    if not outcome.plans or outcome.decision is None:
        return e.Refused(findings=outcome.findings)
    decision = outcome.decision
    return e.Planned(
        plans=ahead_of(wiring, outcome.plans, change_id),
        findings=outcome.findings,
        approvals=decision.approvals,
        by=decision.by,
        mention=mentions(wiring.fleet, decision.by),
        expires_at=wiring.clock() + decision.expires_s,
        dry=asked.intent.dry,
        standings=outcome.standings,
        load_seen=outcome.load,
        blame=blamed.result(),
        emergency=_answered_for(wiring.fleet, decision.emergency),
    )


def _answered_for(fleet: Fleet, override: e.Override | None) -> e.Override | None:
    """With everybody who can ratify it."""
    if override is None:
        return None
    return override.model_copy(update={"mention": mentions(fleet, override.ratify_by)})


def _blame(wiring: Wiring, asked: e.Asked, change_id: str) -> Blame | None:
    """The reason of a revert, judged at once. A revert is never held up by what cannot be read for this."""
    if not isinstance(asked.intent, RevertKnob):
        return None
    try:
        return blame(wiring, wiring.measuring, asked, change_id)
    except StoreUnavailable:
        raise
    except Exception:
        LOG.exception("a revert's reason is not judged", change=change_id)
        return None


def mentions(fleet: Fleet, role: str | None) -> tuple[str, ...]:
    """Slack mentions of everybody who can approve."""
    found = fleet.roles.get(role or "")
    if found is None:
        return ()
    return (*(f"<@{user}>" for user in found.users), *(f"<!subteam^{group}>" for group in found.groups))


def expire(wiring: Wiring, change_id: str) -> None:
    """Record that nobody approved in time."""
    change = wiring.ledger.load(change_id)
    if change.state != "planned" or change.planned is None or wiring.clock() < change.planned.expires_at:
        return
    try:
        wiring.ledger.append(change_id, e.Expired(), expect_version=change.version)
    except LedgerConflict:
        return  # somebody decided in the last moment, or another worker was first
    wiring.doorbell.ring("narrate", "draw", change_id)
