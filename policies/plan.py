"""The plan of a change: what will be written and restarted, in which order, behind which gates, and how it is undone.

A plan is computed from Intent + Fleet + Facts by `policies.planning`; one plan for each restart order offered.
Its digest is what an approver agrees to: any fact in it that changes makes it another plan.
"""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Literal

from pydantic import Field

from policies.deploys.strategy import Releases
from policies.facts import Incarnation
from policies.finding import Finding
from policies.model import Model

GateKind = Literal[
    "incarnation", "port", "health", "environment", "reported", "version", "contract", "admitted", "canary"
]
StepKind = Literal["write", "restart", "switch", "command", "prune", "drain", "admit"]


class FileState(Model):
    """A file that the plan read or will write, as it was when planned. sha256 None: it did not exist."""

    host: str
    path: str
    sha256: str | None
    mode: int | None


class WriteStep(Model):
    """Write (or with text None, remove) clawback's own drop-in of one unit on one host, then daemon-reload."""

    kind: Literal["write"] = "write"
    host: str
    service: str
    unit: str
    wave: int = 1
    path: str
    before: str | None  # text now; None: no file
    text: str | None  # text after; None: no file
    gates: tuple[GateKind, ...] = ()


class RestartStep(Model):
    """Restart one instance and wait for its gates."""

    kind: Literal["restart"] = "restart"
    host: str
    service: str
    unit: str
    wave: int = 1
    argv: tuple[str, ...]  # exactly what the helper runs
    before: Incarnation
    changed: bool  # the knob's value changes in this service: its failed gate is undone automatically
    gates: tuple[GateKind, ...]


class SwitchStep(Model):
    """Have the link of one instance's releases name another one; atomic, and only to a release that is whole."""

    kind: Literal["switch"] = "switch"
    host: str
    service: str
    unit: str
    wave: int = 1
    releases: Releases
    before: str | None  # the release that the link names now; None: there is no link
    to: str | None
    manifest_sha256: str | None  # None: the release only has to be there
    gates: tuple[GateKind, ...] = ()


class CommandStep(Model):
    """Run the declared command of a deploy on one host."""

    kind: Literal["command"] = "command"
    host: str
    service: str
    unit: str
    wave: int = 1
    ref: str  # what it is to bring about
    argv: tuple[str, ...]
    user: str | None
    limit_s: float
    gates: tuple[GateKind, ...] = ()


class PruneStep(Model):
    """Take old releases away from one host, once everything has passed and was watched."""

    kind: Literal["prune"] = "prune"
    host: str
    service: str
    unit: str
    wave: int = 1
    releases: Releases
    protect: tuple[str, ...]  # beside what runs and what is newer
    gates: tuple[GateKind, ...] = ()


class Registration(Model):
    """How a router knows one instance. kind: the router's `worker_type`; bootstrap_port: of a prefill worker."""

    router: str  # service@host of the router that is asked
    api: str  # base url of the router's own API, asked from the router's host
    worker: str  # url of the instance as the router calls it
    kind: Literal["regular", "prefill", "decode"] = "regular"
    bootstrap_port: int | None = None


class DrainStep(Model):
    """Take one instance out at its routers, and wait until nothing is in flight there or the deadline is over."""

    kind: Literal["drain"] = "drain"
    host: str
    service: str
    unit: str
    wave: int = 1
    at: tuple[Registration, ...]
    deadline_s: float
    over: Literal["hold", "restart"]  # when the deadline is over and requests are still in flight
    gates: tuple[GateKind, ...] = ()


class AdmitStep(Model):
    """Give one instance back to its routers; its gate is that each of them sends it requests again."""

    kind: Literal["admit"] = "admit"
    host: str
    service: str
    unit: str
    wave: int = 1
    at: tuple[Registration, ...]
    gates: tuple[GateKind, ...] = ("admitted",)


Step = Annotated[
    WriteStep | RestartStep | SwitchStep | CommandStep | PruneStep | DrainStep | AdmitStep,
    Field(discriminator="kind"),
]


class CanaryWatch(Model):
    """The replica that goes first, alone, and what must hold on it before the others follow.

    require: conditions on named metrics, read on this instance only, at the end of the watch.
    """

    instance: str  # service@host
    why: str  # chosen by what, as a person reads it
    watch_s: float
    require: tuple[str, ...] = ()


class Rolling(Model):
    """How many replicas of a service may be away at once. keep: instances that must be in service at every moment."""

    service: str
    replicas: int
    max_unavailable: int
    keep: int
    canary: CanaryWatch | None = None


class Target(Model):
    """The value that one instance has and is to have. None: not in the environment."""

    instance: str  # service@host
    variable: str
    now: str | None
    now_decided_by: str | None  # "path:line", None when nothing sets it
    then: str | None
    then_decided_by: str | None


class VersionAim(Model):
    """What is to be read back on one instance: `then` after the change, `back` after an undo (None: not asked)."""

    instance: str
    now: str | None  # as read when planned
    then: str
    back: str | None


class DeployPlan(Model):
    """What a deploy or rollback brings about. manifest_sha256: of the release, the same on every host."""

    word: Literal["deploy", "rollback"]
    service: str
    ref: str
    manifest_sha256: str | None
    versions: tuple[VersionAim, ...]


class Agreement(Model):
    """What an engine must report so that a contract holds: `then`, and `back` after an undo (None: not asked)."""

    contract: str
    instance: str
    path: str
    then: str
    back: str | None


class Estimate(Model):
    """Seconds, from recorded restarts of the same instances only. n is how many. `medians`: (service@host, seconds)."""

    median_s: float
    p90_s: float
    n: int
    medians: tuple[tuple[str, float], ...] = ()


class Plan(Model):
    """One way to carry out a change. estimate, load, versions, contents and warnings are not in the digest."""

    order: str
    fleet_sha256: str
    knob: str | None  # None: a deploy, or a restart that changes nothing
    value: str | None  # wanted; None: unset
    targets: tuple[Target, ...]
    steps: tuple[Step, ...]
    undo: tuple[Step, ...]
    files: tuple[FileState, ...]
    incarnations: tuple[tuple[str, Incarnation], ...]  # (service@host, incarnation)
    policy: tuple[Finding, ...]  # the decision's findings
    warnings: tuple[Finding, ...] = ()
    load: tuple[Finding, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()  # (service@host, version) as the engines themselves said
    estimate: Estimate | None = None
    deploy: DeployPlan | None = None
    contents: tuple[Finding, ...] = ()  # what the new version holds, and what a rollback would go to
    rolling: tuple[Rolling, ...] = ()  # of services with more than one instance in this plan
    agreements: tuple[Agreement, ...] = ()  # what engines that change must report

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over everything that must be as it was when the approver looked."""
        out = {"estimate", "warnings", "load", "versions", "contents", *(() if self.deploy else ("deploy",))}
        out |= {name for name in ("rolling", "agreements") if not getattr(self, name)}
        kept = self.model_dump(mode="json", exclude=out)
        for step in (*kept["steps"], *kept["undo"]):
            if step["wave"] == 1:  # spelled as plans were before there were waves: theirs stay good
                del step["wave"]
        return hashlib.sha256(json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    @property
    def services(self) -> tuple[str, ...]:
        """Instances (service@host) touched, in order of first touch."""
        return tuple(dict.fromkeys(f"{s.service}@{s.host}" for s in self.steps))

    @property
    def leased(self) -> tuple[str, ...]:
        """The leases to take: the instances touched, and the routers whose lists of workers are changed."""
        steps = (s for s in (*self.steps, *self.undo) if isinstance(s, (DrainStep, AdmitStep)))
        return tuple(dict.fromkeys((*self.services, *(at.router for s in steps for at in s.at))))
