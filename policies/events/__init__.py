"""Every event that the ledger can hold. An event is a fact that happened, told with codes and values, never prose.

An Entry wraps one event with its place in the chain. The state of a change is a fold over its events
(`policies.change`); the thread is a drawing of them (`bot.narrator`).
"""

from __future__ import annotations

from policies.events.aside import misplaced, tells_change
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
from policies.events.emergency import Lapsed, Override, Ratified, RatifyReminded
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
from policies.events.entry import EVENT, GENESIS, Entry, Event, chain_problem, indexes, stored_digest
from policies.events.locks import Confirmed, Locked, RollbackLock, Unlocked
from policies.events.outside import Difference, DriftSeen, OutsideSeen
from policies.events.records import EvidenceRecorded
from policies.events.rolling import CanaryFailed, CanaryPassed, CanaryStarted, Required
from policies.events.silences import SilenceEnded, SilenceFailed, SilenceMade, SilenceProlonged
from policies.events.truth import StatementDisputed, StatementJudgedAgain, StatementMade, SuspicionReminded
from policies.events.waiting import Queued, Rebased
from policies.events.work import (
    Baked,
    BakeReading,
    BakeStarted,
    GateFailed,
    GatePassed,
    Held,
    Part,
    Probed,
    Proved,
    Started,
    StepDone,
    StepStarted,
    Unknown,
)

__all__ = (
    "EVENT",
    "GENESIS",
    "AbortAsked",
    "Aborted",
    "ApprovalGiven",
    "Asked",
    "BakeReading",
    "BakeStarted",
    "Baked",
    "CanaryFailed",
    "CanaryPassed",
    "CanaryStarted",
    "ClickRefused",
    "Confirmed",
    "Denied",
    "Difference",
    "DriftSeen",
    "Entry",
    "Event",
    "EvidenceRecorded",
    "Expired",
    "Failed",
    "GateFailed",
    "GatePassed",
    "Held",
    "KeepChosen",
    "Lapsed",
    "Locked",
    "NothingToDo",
    "OutsideSeen",
    "Override",
    "Part",
    "Planned",
    "Probed",
    "Proved",
    "Queued",
    "Ratified",
    "RatifyReminded",
    "Rebased",
    "Refused",
    "Reminded",
    "Replan",
    "Required",
    "RetryAsked",
    "RollbackLock",
    "RolledBack",
    "SilenceEnded",
    "SilenceFailed",
    "SilenceMade",
    "SilenceProlonged",
    "Started",
    "StatementDisputed",
    "StatementJudgedAgain",
    "StatementMade",
    "StepDone",
    "StepStarted",
    "Succeeded",
    "SuspicionReminded",
    "UndoAsked",
    "UndoStarted",
    "Unknown",
    "Unlocked",
    "chain_problem",
    "indexes",
    "misplaced",
    "stored_digest",
    "tells_change",
)
