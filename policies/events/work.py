"""What a worker does and finds: leases, steps, gates, the proof, and where it stops for a person."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from policies.facts import Incarnation
from policies.finding import Finding, Verdict
from policies.model import Model
from policies.plan import GateKind, StepKind
from policies.probe import Probe
from policies.proof import Proof
from policies.routers.listed import Taken
from policies.standing import Standing

Part = Literal["do", "undo"]


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
    step: StepKind
    instance: str


class StepDone(Model):
    """The act happened. `host_at`: the host's clock. `before`: the incarnation that was replaced (restart)."""

    kind: Literal["step_done"] = "step_done"
    part: Part
    index: int
    step: StepKind
    instance: str
    host_at: float
    before: Incarnation | None = None
    sha256: str | None = None
    findings: tuple[Finding, ...] = ()  # what a command, a pruning or a drain had to say
    found: tuple[Taken, ...] = ()  # of a drain: what each router knew of the instance


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
    probe: Probe | None = None  # of a canary


class GateFailed(Model):
    """A gate did not pass (fail, inconclusive or error)."""

    kind: Literal["gate_failed"] = "gate_failed"
    part: Part
    index: int
    instance: str
    gate: GateKind
    verdict: Verdict


class Unknown(Model):
    """What happened on the host is not known and is being asked."""

    kind: Literal["unknown"] = "unknown"
    findings: tuple[Finding, ...]


class Held(Model):
    """Work stopped and waits for a person."""

    kind: Literal["held"] = "held"
    findings: tuple[Finding, ...]
    standing: Standing | None = None  # what each replica has, where a service has several


class Proved(Model):
    """The proof ladder after the last gate, one for each instance of the knob."""

    kind: Literal["proved"] = "proved"
    proofs: dict[str, Proof]  # by instance
    findings: tuple[Finding, ...]  # health and canary, as measured


class Probed(Model):
    """A canary at the end of the watch came back: how long it took, and the load then."""

    kind: Literal["probed"] = "probed"
    probe: Probe


class BakeReading(Model):
    """One look at an instance for the watch after the last gate. counters: failures by short name."""

    incarnation: Incarnation
    n_restarts: int | None
    result: str
    active_state: str
    counters: dict[str, float] = Field(default_factory=dict)


class BakeStarted(Model):
    """The watch began. until: epoch seconds. readings: by instance, what later ones are compared with."""

    kind: Literal["bake_started"] = "bake_started"
    until: float
    readings: dict[str, BakeReading]


class Baked(Model):
    """The watch ended and nothing spoke against the change. findings: what was watched."""

    kind: Literal["baked"] = "baked"
    findings: tuple[Finding, ...]
