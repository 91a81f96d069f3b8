"""Every event that the ledger can hold. An event is a fact that happened, told with codes and values, never prose.

An Entry wraps one event with its place in the chain. The state of a change is a fold over its events
(`policies.change`); the thread is a drawing of them (`bot.narrator`).
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from policies.evidence import Record
from policies.facts import Incarnation
from policies.finding import Finding, Verdict
from policies.intents import Actor, Intent, Where
from policies.model import Model
from policies.plan import GateKind, Plan
from policies.proof import Proof

Part = Literal["do", "undo"]


class Asked(Model):
    """Somebody asked for a change. `said` is their text; `normalised` is how it was read."""

    kind: Literal["asked"] = "asked"
    intent: Intent
    actor: Actor
    where: Where
    said: str
    normalised: str
    fleet_sha256: str


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


class Expired(Model):
    """Nobody approved in time."""

    kind: Literal["expired"] = "expired"


class Started(Model):
    """A worker took the leases. `tokens` are the fencing tokens by instance. `resumed`: it took over."""

    kind: Literal["started"] = "started"
    worker: str
    tokens: dict[str, int]
    resumed: bool = False


class StepStarted(Model):
    """Written before the act. `index` counts in plan.steps (do) or plan.undo (undo)."""

    kind: Literal["step_started"] = "step_started"
    part: Part
    index: int
    step: Literal["write", "restart"]
    instance: str


class StepDone(Model):
    """The act happened. `host_at`: the host's clock. `before`: the incarnation that was replaced (restart)."""

    kind: Literal["step_done"] = "step_done"
    part: Part
    index: int
    step: Literal["write", "restart"]
    instance: str
    host_at: float
    before: Incarnation | None = None
    sha256: str | None = None


class GatePassed(Model):
    """A gate behind a step passed. `waited_s` from the restart's issue to readiness, on the host's clock."""

    kind: Literal["gate_passed"] = "gate_passed"
    part: Part
    index: int
    instance: str
    gate: GateKind
    verdict: Verdict
    incarnation: Incarnation | None = None
    waited_s: float | None = None
    host_at: float | None = None


class GateFailed(Model):
    """A gate did not pass (fail, inconclusive or error)."""

    kind: Literal["gate_failed"] = "gate_failed"
    part: Part
    index: int
    instance: str
    gate: GateKind
    verdict: Verdict


class UndoStarted(Model):
    """Undoing began: by itself, or because `actor` asked."""

    kind: Literal["undo_started"] = "undo_started"
    actor: Actor | None
    findings: tuple[Finding, ...]


class AbortAsked(Model):
    """Stop after the gate of the restart that runs, then undo."""

    kind: Literal["abort_asked"] = "abort_asked"
    actor: Actor


class RetryAsked(Model):
    """Look at the failed gate again."""

    kind: Literal["retry_asked"] = "retry_asked"
    actor: Actor


class UndoAsked(Model):
    """Undo a held or finished change."""

    kind: Literal["undo_asked"] = "undo_asked"
    actor: Actor


class KeepChosen(Model):
    """Leave things as they are: an approver's word."""

    kind: Literal["keep_chosen"] = "keep_chosen"
    actor: Actor


class Held(Model):
    """Work stopped and waits for a person."""

    kind: Literal["held"] = "held"
    findings: tuple[Finding, ...]


class Unknown(Model):
    """What happened on the host is not known and is being asked."""

    kind: Literal["unknown"] = "unknown"
    findings: tuple[Finding, ...]


class Proved(Model):
    """The proof ladder after the last gate, one for each instance of the knob."""

    kind: Literal["proved"] = "proved"
    proofs: dict[str, Proof]  # by instance
    findings: tuple[Finding, ...]  # health and canary, as measured


class Succeeded(Model):
    """The end. `was` and `now` are the knob's values by instance; None: not in the environment."""

    kind: Literal["succeeded"] = "succeeded"
    knob: str
    order: str
    was: dict[str, str | None]
    now: dict[str, str | None]
    took_s: float


class RolledBack(Model):
    """Undone; every undo gate passed."""

    kind: Literal["rolled_back"] = "rolled_back"
    findings: tuple[Finding, ...]


class Aborted(Model):
    """Ended on request with nothing of it left in force."""

    kind: Literal["aborted"] = "aborted"
    findings: tuple[Finding, ...]


class Failed(Model):
    """The end, not as wanted; `findings` say how things stand."""

    kind: Literal["failed"] = "failed"
    findings: tuple[Finding, ...]


class EvidenceRecorded(Model):
    """A record was stored. Subject: the record's id."""

    kind: Literal["evidence_recorded"] = "evidence_recorded"
    record: Record


Event = Annotated[
    Asked
    | Planned
    | Refused
    | NothingToDo
    | Replan
    | ApprovalGiven
    | ClickRefused
    | Denied
    | Expired
    | Started
    | StepStarted
    | StepDone
    | GatePassed
    | GateFailed
    | UndoStarted
    | AbortAsked
    | RetryAsked
    | UndoAsked
    | KeepChosen
    | Held
    | Unknown
    | Proved
    | Succeeded
    | RolledBack
    | Aborted
    | Failed
    | EvidenceRecorded,
    Field(discriminator="kind"),
]
EVENT: TypeAdapter[Event] = TypeAdapter(Event)
GENESIS = "0" * 64


class Entry(Model):
    """One link of the chain.

    seq: place in the whole ledger, from 1. version: place among the subject's entries, from 1.
    at: epoch seconds of the writer. hash: SHA-256 over everything else in canonical JSON.
    """

    seq: int
    subject: str
    version: int
    at: float
    event: Event
    prev: str
    hash: str = ""

    def digest(self) -> str:
        """The hash that this entry must carry."""
        body = self.model_dump(mode="json", exclude={"hash"})
        return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def sealed(self) -> Entry:
        """The same entry with its hash."""
        return self.model_copy(update={"hash": self.digest()})


def chain_problem(prev: str, entry: Entry) -> Finding | None:
    """Why `entry` does not follow the entry with hash `prev`; None when it does."""
    if entry.prev != prev:
        values: dict[str, str | int | float | None] = {
            "seq": entry.seq,
            "expected": prev,
            "found": entry.prev,
        }
        return Finding(code="ledger.broken-link", effect="refuse", values=values)
    if entry.digest() != entry.hash:
        values = {"seq": entry.seq, "subject": entry.subject, "kind": entry.event.kind}
        return Finding(code="ledger.edited-entry", effect="refuse", values=values)
    return None


def indexes(entry: Entry) -> tuple[str, ...]:
    """Names of the lists that this entry is found in besides its subject's, so that projections can be rebuilt."""
    event = entry.event
    if isinstance(event, Succeeded):
        return (f"knob:{event.knob}",)
    if isinstance(event, GatePassed) and event.gate == "health" and event.waited_s is not None:
        return (f"boot:{event.instance}",)
    if isinstance(event, EvidenceRecorded):
        return (f"evidence:{event.record.knob}", "evidence")
    if isinstance(event, Asked):
        return ("changes",)
    return ()
