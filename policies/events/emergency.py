"""What is recorded of emergencies: what was done without, and that somebody ratified it, or that nobody did in time."""

from __future__ import annotations

from typing import Literal

from policies.finding import Finding
from policies.intents import Actor, Intent
from policies.model import Model


class Override(Model):
    """What an emergency does without. Who and why stand beside it: the confirming actor, and the intent's reason.

    by: the role that may. ratify_by: the role that answers for it, within `within_s`. mention: everybody in it.
    approvals: that nobody else gave, of people in `role`. freezes, locks: by name. evidence: what was found wanting.
    """

    by: str
    ratify_by: str
    within_s: float
    because: str
    mention: tuple[str, ...] = ()
    approvals: int = 0
    role: str | None = None
    freezes: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()

    @property
    def anything(self) -> bool:
        """Whether there is anything that was overridden."""
        return bool(self.approvals or self.freezes or self.locks or self.evidence)


class Ratified(Model):
    """A second person answers for an override."""

    kind: Literal["ratified"] = "ratified"
    actor: Actor


class RatifyReminded(Model):
    """Those who may ratify were reminded, once, that the time for it will soon be over."""

    kind: Literal["ratify_reminded"] = "ratify_reminded"


class Lapsed(Model):
    """Nobody ratified in time.

    undo: the change that takes it back, asked for with `back`; its own name where it is held; None: `findings` say why.
    """

    kind: Literal["lapsed"] = "lapsed"
    undo: str | None = None
    back: Intent | None = None
    findings: tuple[Finding, ...] = ()
