"""What is recorded of an approved change before its work: its place in the line, a plan brought up to date."""

from __future__ import annotations

from typing import Literal

from policies.finding import Finding
from policies.model import Model
from policies.plan import Plan


class Queued(Model):
    """It waits for changes on the same instances. position: one more than have to end before it.

    behind: those that share an instance with it; held: the one ahead that waits for a person. left_s: seconds until its
    turn, from recorded restarts (n: the fewest of an instance); None: not known.
    """

    kind: Literal["queued"] = "queued"
    position: int
    behind: tuple[str, ...]
    on: tuple[str, ...]
    held: str | None = None
    left_s: float | None = None
    n: int | None = None


class Rebased(Model):
    """The approved plan with the processes of today: changes of ours restarted them meanwhile, and nothing else moved.

    findings: one for each process, with the change that restarted it.
    """

    kind: Literal["rebased"] = "rebased"
    plan: Plan
    findings: tuple[Finding, ...]
