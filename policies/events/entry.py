"""One link of the chain: an event, its place, and the hash that ties it to the link before."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated

from pydantic import Field, JsonValue, TypeAdapter

from policies.events.asking import (
    ApprovalGiven,
    Asked,
    ClickRefused,
    Denied,
    Expired,
    NothingToDo,
    Planned,
    Refused,
    Reminded,
    Replan,
)
from policies.events.emergency import Lapsed, Ratified, RatifyReminded
from policies.events.ends import (
    AbortAsked,
    Aborted,
    Failed,
    KeepChosen,
    RetryAsked,
    RolledBack,
    Succeeded,
    UndoAsked,
    UndoStarted,
)
from policies.events.locks import Confirmed, Locked, Unlocked
from policies.events.outside import DriftSeen, OutsideSeen
from policies.events.records import EvidenceRecorded
from policies.events.rolling import CanaryFailed, CanaryPassed, CanaryStarted
from policies.events.silences import SilenceEnded, SilenceFailed, SilenceMade, SilenceProlonged
from policies.events.truth import StatementDisputed, StatementJudgedAgain, StatementMade, SuspicionReminded
from policies.events.waiting import Queued, Rebased
from policies.events.work import (
    Baked,
    BakeStarted,
    GateFailed,
    GatePassed,
    Held,
    Probed,
    Proved,
    Started,
    StepDone,
    StepStarted,
    Unknown,
)
from policies.finding import Finding
from policies.intents import Deploy, Rollback
from policies.model import Model
from policies.tickets import ticket_key

Event = Annotated[
    Asked
    | Planned
    | Refused
    | NothingToDo
    | Replan
    | ApprovalGiven
    | ClickRefused
    | Denied
    | Reminded
    | Expired
    | Queued
    | Rebased
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
    | CanaryStarted
    | CanaryPassed
    | CanaryFailed
    | Proved
    | BakeStarted
    | Probed
    | Baked
    | Succeeded
    | RolledBack
    | Aborted
    | Failed
    | Ratified
    | RatifyReminded
    | Lapsed
    | EvidenceRecorded
    | SuspicionReminded
    | SilenceMade
    | SilenceProlonged
    | SilenceEnded
    | SilenceFailed
    | OutsideSeen
    | DriftSeen
    | Locked
    | Unlocked
    | Confirmed
    | StatementMade
    | StatementDisputed
    | StatementJudgedAgain,
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

    def canonical(self) -> str:
        """The one spelling of an entry: sorted keys, no spaces, ASCII."""
        return _spelled(self.model_dump(mode="json"))

    def sealed(self) -> Entry:
        """The same entry with its hash."""
        return self.model_copy(update={"hash": stored_digest(self.canonical())})


def stored_digest(text: str) -> str:
    """The hash that an entry stored as `text` must carry.

    Over the text as it was written, not over the model: an entry of an older version, which lacks a field that was
    added since, keeps its hash.
    Raises: ValueError when the text is no JSON object.
    """
    body = json.loads(text)
    if not isinstance(body, dict):
        raise ValueError(f"an entry is a JSON object, this is {text[:40]!r}")  # noqa: TRY004  # bad text, not a bad call
    body.pop("hash", None)
    return hashlib.sha256(_spelled(body).encode()).hexdigest()


def _spelled(body: dict[str, JsonValue]) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def chain_problem(prev: str, entry: Entry, digest: str) -> Finding | None:
    """Why `entry` does not follow the one with hash `prev`; None when it does. digest: `stored_digest` of its text."""
    if entry.prev != prev:
        values: dict[str, str | int | float | None] = {"seq": entry.seq, "expected": prev, "found": entry.prev}
        return Finding(code="ledger.broken-link", effect="refuse", values=values)
    if digest != entry.hash:
        values = {"seq": entry.seq, "subject": entry.subject, "kind": entry.event.kind}
        return Finding(code="ledger.edited-entry", effect="refuse", values=values)
    return None


def indexes(entry: Entry) -> tuple[str, ...]:
    """Names of the lists that this entry is found in besides its subject's, so that projections can be rebuilt."""
    event = entry.event
    if isinstance(event, Succeeded):
        of_knob = () if event.knob is None else (f"knob:{event.knob}",)
        deployed = () if event.service is None else (f"version:{event.service}",)
        left = (("suspicions", event.suspicion), ("locks", event.locked))
        return (*of_knob, *deployed, *(name for name, one in left if one is not None))
    if isinstance(event, GatePassed) and event.gate == "health" and event.waited_s is not None:
        return (f"boot:{event.instance}",)
    if isinstance(event, GatePassed | Probed) and event.probe is not None:
        return (f"probe:{event.probe.service}",)
    if isinstance(event, ApprovalGiven):
        return () if event.override is None else ("emergencies",)
    if isinstance(event, EvidenceRecorded):
        return (f"evidence:{event.record.knob}", "evidence")
    if isinstance(event, SuspicionReminded | SilenceMade | SilenceProlonged | SilenceEnded | SilenceFailed):
        return ("asides",)
    if isinstance(event, Locked | Unlocked | Confirmed):
        return ("locks",)
    if isinstance(event, OutsideSeen):
        return ("outside",)
    if isinstance(event, DriftSeen):
        return ("drift",)
    if isinstance(event, StatementMade):
        about = event.statement.about
        return ("asides",) if about is None else ("asides", f"statements:{about}")
    if isinstance(event, StatementDisputed | StatementJudgedAgain):
        return ("asides",)
    if isinstance(event, Asked):
        intent = event.intent
        of_ticket = () if intent.ticket is None else (f"ticket:{ticket_key(intent.ticket)}",)
        of_service = (f"deploys:{intent.service}",) if isinstance(intent, (Deploy, Rollback)) else ()
        return ("changes", *of_service, *of_ticket)
    return ()
