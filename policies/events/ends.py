"""Words about a change at work, undoing, and how a change ends."""

from __future__ import annotations

from typing import Literal

from policies.causes.verdict import Verdict
from policies.events.locks import RollbackLock
from policies.finding import Finding
from policies.intents import Actor
from policies.model import Model
from policies.standing import Standing
from policies.suspicion import Suspicion


class UndoStarted(Model):
    """Undoing began: by itself, or because `actor` asked."""

    kind: Literal["undo_started"] = "undo_started"
    actor: Actor | None
    findings: tuple[Finding, ...]
    standing: Standing | None = None  # what each replica has, where a service has several


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
    standing: Standing | None = None  # what each replica has, where a service has several


class Succeeded(Model):
    """The end. `was` and `now` are the knob's values, or a service's versions, by instance; None: not there."""

    kind: Literal["succeeded"] = "succeeded"
    knob: str | None  # None: a deploy, or a restart that changed no value
    order: str
    word: str | None = None  # the intent's kind; None in entries that were written before it was kept
    was: dict[str, str | None]
    now: dict[str, str | None]
    took_s: float
    suspicion: Suspicion | None = None  # of a revert whose cause is not verified
    service: str | None = None  # that was deployed
    ref: str | None = None
    cause: Verdict | None = None  # of a revert whose cause is
    locked: RollbackLock | None = None  # of a rollback that took a version away
    standing: Standing | None = None  # what each replica has, where a service has several


class RolledBack(Model):
    """Undone; every undo gate passed."""

    kind: Literal["rolled_back"] = "rolled_back"
    findings: tuple[Finding, ...]
    standing: Standing | None = None  # what each replica has, where a service has several


class Aborted(Model):
    """Ended on request with nothing of it left in force."""

    kind: Literal["aborted"] = "aborted"
    findings: tuple[Finding, ...]
    standing: Standing | None = None  # what each replica has, where a service has several


class Failed(Model):
    """The end, not as wanted; `findings` say how things stand."""

    kind: Literal["failed"] = "failed"
    findings: tuple[Finding, ...]
    standing: Standing | None = None  # what each replica has, where a service has several
