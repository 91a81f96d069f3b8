"""What is asked, planned and decided before any work."""

from __future__ import annotations

from typing import Literal

from policies.applicability import Standing
from policies.blame import Blame
from policies.context import LoadRange
from policies.events.emergency import Override
from policies.finding import Finding
from policies.intents import Actor, Intent, Where
from policies.model import Model
from policies.plan import Plan


class Asked(Model):
    """Somebody asked for a change. `said` is their text; `normalised` is how it was read."""

    kind: Literal["asked"] = "asked"
    intent: Intent
    actor: Actor
    where: Where
    said: str
    normalised: str
    fleet_sha256: str
    undoes: str | None = None  # asked by clawback itself: takes back this change, which nobody ratified


class Planned(Model):
    """Plans were made and policy allows them, given approvals. The first plan is the default order."""

    kind: Literal["planned"] = "planned"
    plans: tuple[Plan, ...]
    findings: tuple[Finding, ...]
    approvals: int
    by: str | None  # role that may approve; None: no approval needed
    mention: tuple[str, ...]  # Slack ids to mention: <@U..> and <!subteam^S..>
    expires_at: float
    dry: bool = False
    standings: tuple[Standing, ...] = ()  # what records of the values now and then are worth today
    load_seen: LoadRange | None = None  # requests that ran when it was planned
    blame: Blame | None = None  # of a revert: what was read when it was asked
    emergency: Override | None = None  # what its requester's own confirmation does without


class Refused(Model):
    """Policy or planning said no, or hosts could not be read."""

    kind: Literal["refused"] = "refused"
    findings: tuple[Finding, ...]


class NothingToDo(Model):
    """The fleet already is as asked."""

    kind: Literal["nothing_to_do"] = "nothing_to_do"
    findings: tuple[Finding, ...]


class Replan(Model):
    """What the approver saw is no longer what would be done; the change is asked again."""

    kind: Literal["replan"] = "replan"
    findings: tuple[Finding, ...]


class ApprovalGiven(Model):
    """One approver agreed to one plan. `complete`: the quorum is reached."""

    kind: Literal["approval_given"] = "approval_given"
    actor: Actor
    order: str
    digest: str
    complete: bool
    override: Override | None = None  # what was done without, and has to be ratified


class ClickRefused(Model):
    """A word or click about the change that was not allowed; kept, because it was answered."""

    kind: Literal["click_refused"] = "click_refused"
    actor: Actor
    what: str
    finding: Finding


class Denied(Model):
    """An approver said no."""

    kind: Literal["denied"] = "denied"
    actor: Actor


class Reminded(Model):
    """Those who may approve were reminded, once, that the time for it will soon be over."""

    kind: Literal["reminded"] = "reminded"


class Expired(Model):
    """Nobody approved in time."""

    kind: Literal["expired"] = "expired"
