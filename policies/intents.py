"""What a person asked for. An Intent changes something and becomes a Change; a Question only reads.

A Scope is a service, a host or `service@host`, as typed; it is resolved against the fleet, never guessed.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from policies.asking import Asking
from policies.model import Model


class Actor(Model):
    """Exactly one person. `id` is a Slack user id, or the mapped user of a terminal."""

    id: str
    team: str = ""
    name: str = ""
    source: Literal["slack", "terminal"] = "slack"
    roles: tuple[str, ...] = ()  # as resolved when the person was identified


class Where(Model):
    """Where it was said. `thread_ts` is a Slack message ts string, or None outside a thread."""

    channel: str = ""
    thread_ts: str | None = None


class SetKnob(Asking):
    """`set NAME=VALUE`: a new value."""

    kind: Literal["set"] = "set"
    knob: str
    value: str
    scope: str | None = None
    order: str | None = None
    because: str | None = None
    dry: bool = False


class RestoreKnob(Asking):
    """`restore NAME[=VALUE]`: back to a value that was live and was taken away. None: the one last taken away."""

    kind: Literal["restore"] = "restore"
    knob: str
    value: str | None = None
    scope: str | None = None
    order: str | None = None
    because: str | None = None  # of an emergency
    dry: bool = False


class RevertKnob(Asking):
    """`revert NAME because "..."`: away from the present value, for a stated reason."""

    kind: Literal["revert"] = "revert"
    knob: str
    because: str
    citing: tuple[str, ...] = ()
    scope: str | None = None
    order: str | None = None
    dry: bool = False


class UnsetKnob(Asking):
    """`unset NAME`: the variable shall not be in the environment."""

    kind: Literal["unset"] = "unset"
    knob: str
    scope: str | None = None
    order: str | None = None
    because: str | None = None
    dry: bool = False


class Restart(Asking):
    """`restart SCOPE`: a service, a host's services or service@host, with nothing changed.

    anyway: also an engine that works although its health check fails; the person and the reason are on record.
    """

    kind: Literal["restart"] = "restart"
    scope: str
    order: str | None = None
    because: str | None = None
    anyway: bool = False
    dry: bool = False


class Deploy(Asking):
    """`SERVICE REF` behind /deploy: another version of a service."""

    kind: Literal["deploy"] = "deploy"
    service: str
    ref: str
    order: str | None = None
    because: str | None = None
    dry: bool = False


class Rollback(Asking):
    """`rollback SERVICE`: to the last version that was proven good."""

    kind: Literal["rollback"] = "rollback"
    service: str
    order: str | None = None
    because: str | None = None
    dry: bool = False


KnobIntent = SetKnob | RestoreKnob | RevertKnob | UnsetKnob
DeployIntent = Deploy | Rollback
Intent = Annotated[
    SetKnob | RestoreKnob | RevertKnob | UnsetKnob | Restart | Deploy | Rollback, Field(discriminator="kind")
]


def subject(intent: KnobIntent | DeployIntent | Restart) -> str:
    """What an intent is about, in one word: the knob's name, a service, or the scope of a restart."""
    if isinstance(intent, (Deploy, Rollback)):
        return intent.service
    return intent.scope if isinstance(intent, Restart) else intent.knob


class Verify(Model):
    """`verify NAME`: the proof ladder, read only."""

    kind: Literal["verify"] = "verify"
    knob: str


class ListKnobs(Model):
    """`list [on SCOPE]`: desired, configured and live values."""

    kind: Literal["list"] = "list"
    scope: str | None = None


class ShowKnob(Model):
    """`show NAME`: definition and value."""

    kind: Literal["show"] = "show"
    knob: str


class EvidenceOf(Model):
    """`evidence NAME`: what is recorded of a knob, and how well it is known."""

    kind: Literal["evidence"] = "evidence"
    knob: str


class EvidenceAdd(Model):
    """`evidence add`: the form in which result files are handed over."""

    kind: Literal["evidence_add"] = "evidence_add"


class Status(Model):
    """`status [CHANGE]`."""

    kind: Literal["status"] = "status"
    change: str | None = None


class Help(Model):
    """`help [COMMAND]`."""

    kind: Literal["help"] = "help"
    command: str | None = None


class Act(Model):
    """A word about a change that exists: confirm, deny, abort, keep, undo, retry, ratify.

    `digest` is what the person saw (a button carries it); None: typed by hand, the current plan is meant.
    """

    kind: Literal["confirm", "deny", "abort", "keep", "undo", "retry", "ratify"]
    change: str
    order: str | None = None
    digest: str | None = None


class History(Model):
    """`history NAME`: everything that happened to a knob, in order."""

    kind: Literal["history"] = "history"
    knob: str


class Log(Model):
    """`log [since DURATION] [ticket ID]`, behind /deploy: what changed, by us or not. Units: seconds.

    ticket: changes of this one alone; since_s None: those of two hours, of a ticket all of them.
    """

    kind: Literal["log"] = "log"
    since_s: float | None = Field(default=None, gt=0)
    ticket: str | None = None


class LockScope(Model):
    """`lock SCOPE because "..." [for DURATION]`: nothing there is changed until it is opened. Units: seconds."""

    kind: Literal["lock"] = "lock"
    scope: str
    because: str
    for_s: float | None = Field(default=None, gt=0)


class UnlockScope(Model):
    """`unlock SCOPE`, or the id of the lock."""

    kind: Literal["unlock"] = "unlock"
    scope: str


class WhyKnob(Model):
    """`why NAME`, behind /knob: where a knob's value comes from."""

    kind: Literal["why_knob"] = "why_knob"
    knob: str


class WhyCause(Model):
    """`why CHANGE|SERVICE`, behind /cause: what the metrics say, which causes hold, which are refuted."""

    kind: Literal["why_cause"] = "why_cause"
    about: str


class Reclaim(Model):
    """`reclaim`: what was taken away on suspicion, what it costs, how to get it back."""

    kind: Literal["reclaim"] = "reclaim"


class StateCause(Model):
    """`cause NAME` or `cause "words"`: somebody states a cause. Exactly one of `name` and `text`.

    `of`: the change that it is about; None: what is seen now.
    """

    kind: Literal["cause"] = "cause"
    name: str | None = None  # of the fleet's catalogue
    text: str | None = None  # their own words
    of: str | None = None
    citing: tuple[str, ...] = ()


class DisputeStatement(Model):
    """`dispute STATEMENT because "..."`. `because` None: a click, which gives no reason."""

    kind: Literal["dispute"] = "dispute"
    statement: str
    because: str | None = None


Question = Annotated[
    Verify | ListKnobs | ShowKnob | EvidenceOf | Status | Help | History | Log | WhyKnob | WhyCause | Reclaim,
    Field(discriminator="kind"),
]
Command = Annotated[
    SetKnob
    | RestoreKnob
    | RevertKnob
    | UnsetKnob
    | Restart
    | Deploy
    | Rollback
    | Verify
    | ListKnobs
    | ShowKnob
    | EvidenceOf
    | EvidenceAdd
    | Status
    | Help
    | History
    | Log
    | LockScope
    | UnlockScope
    | WhyKnob
    | WhyCause
    | Reclaim
    | StateCause
    | DisputeStatement
    | Act,
    Field(discriminator="kind"),
]
