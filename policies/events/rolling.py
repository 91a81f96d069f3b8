"""What is told of the replica that goes first: its watch, and what that was judged on."""

from __future__ import annotations

from typing import Literal

from policies.citation import Citation
from policies.events.work import BakeReading
from policies.finding import Finding, Verdict
from policies.model import Model


class Required(Model):
    """One condition, judged on readings of one instance. n: how many readings; citations: the first and the last."""

    instance: str
    condition: str
    word: Literal["holds", "fails", "unknown"]
    n: int
    citations: tuple[Citation, ...] = ()
    why: tuple[Finding, ...] = ()  # where it is not known


class CanaryStarted(Model):
    """The watch began. until: epoch seconds. readings: by instance, what later ones are compared with."""

    kind: Literal["canary_started"] = "canary_started"
    until: float
    readings: dict[str, BakeReading]


class CanaryPassed(Model):
    """Every condition held and nothing spoke against it. findings: what was watched beside the conditions."""

    kind: Literal["canary_passed"] = "canary_passed"
    instances: tuple[str, ...]
    findings: tuple[Finding, ...]
    required: tuple[Required, ...] = ()


class CanaryFailed(Model):
    """It did not pass: fail where something speaks against the change, inconclusive where that is not known."""

    kind: Literal["canary_failed"] = "canary_failed"
    instances: tuple[str, ...]
    verdict: Verdict
    required: tuple[Required, ...] = ()
