"""The lines of a change's thread: which event gives which line, as one table.

A line is never edited. What an event means in passing (a gate that only leads to the next, a step that is about to be
done) has no line; the card shows it.
"""

from __future__ import annotations

from bot import click_lines, lines
from bot.cards import deploys, drains, emergency, rolling
from bot.cards.blame import blame_lines
from bot.cards.kit import cut
from bot.cards.plan import mentions
from bot.cards.probe import probe_line
from bot.cards.progress import held_next, reasons, succeeded
from bot.cards.standing import mixed_now
from bot.cards.story import Story, instance, named, order_said, value_written
from bot.cards.verdict import proof_line
from bot.cards.waiting import queued
from bot.markup import Markup, joined
from bot.messages import say
from bot.times import clock
from policies import events as e
from policies.events.aside import ASIDE
from policies.finding import Finding
from policies.plan import AdmitStep, CommandStep, DrainStep, PruneStep, RestartStep, SwitchStep, WriteStep

MOST_LINE = 2800


def line(story: Story) -> Markup | None:
    """The line of the story's newest entry, with its time; None when that has none."""
    entry = story.entry
    said = TABLE[entry.event.kind](story)
    return None if said is None else cut(f"{clock(_at(entry))} {said}", MOST_LINE)


def _at(entry: e.Entry) -> float:
    """When it happened: by the host's clock where the host did it, else when it was recorded."""
    host_at = getattr(entry.event, "host_at", None)
    return float(host_at) if host_at is not None else entry.at


def _planned(story: Story) -> Markup | None:
    event = story.entry.event
    if not isinstance(event, e.Planned) or not event.plans:
        return None
    again = sum(isinstance(entry.event, e.Planned) for entry in story.entries) > 1
    orders = joined([order_said(plan) for plan in event.plans], ", ")
    said = say("step.planned-again" if again else "step.planned", orders=orders, digest=event.plans[0].digest)
    if event.blame is not None:
        said = joined([said, *blame_lines(event.blame, event.plans[0].knob or "")])
    asked = story.change.asked
    if asked is not None and asked.intent.ticket is not None:
        said = joined([said, say("plan.ticket", ticket=asked.intent.ticket)])
    # an edited card notifies nobody, and neither does a name on it: those who decide are asked here
    who = mentions(event, story.groups)
    return joined([said, say("plan.please", who=who, until=event.expires_at)]) if who else said


def _reminded(story: Story) -> Markup | None:
    planned = story.change.planned
    if planned is None:
        return None
    who = mentions(planned, story.groups)
    return say("step.reminded", who=who, until=planned.expires_at) if who else None


def _started(story: Story) -> Markup | None:
    event = story.entry.event
    if not isinstance(event, e.Started):
        return None
    return say("step.resumed" if event.resumed else "step.started", instances=", ".join(event.tokens))


def _step_done(story: Story) -> Markup | None:
    event = story.entry.event
    plan = story.change.plan
    if not isinstance(event, e.StepDone) or plan is None:
        return None
    steps = plan.undo if event.part == "undo" else plan.steps
    step = steps[event.index]
    undo = event.part == "undo"
    if isinstance(step, (SwitchStep, CommandStep, PruneStep)):
        return deploys.done(step, event)
    if isinstance(step, RestartStep):
        pid, name = (event.before or step.before).main_pid, named(plan, event.instance)
        was = say("step.was-pid", pid=pid) if pid else say("step.was-none")
        if undo:
            return say("step.undo-restarted", service=name, was=was)
        setting = next((t for t in plan.targets if t.instance == event.instance and step.changed), None)
        if setting is None:
            return say("step.restarted", service=name, was=was)
        told = f"{setting.variable}={setting.then}" if setting.then is not None else None
        if plan.deploy is not None and not any(isinstance(s, WriteStep) for s in plan.steps):
            told = plan.deploy.ref
        return say("step.restarted-with", service=name, setting=told or f"{setting.variable} unset", was=was)
    if isinstance(step, (DrainStep, AdmitStep)):
        return drains.done(event)
    if undo:
        return say("step.undo-written", instance=instance(step))
    if step.text is None:
        return say("step.removed", instance=instance(step))
    written = value_written(plan, step, undo=undo)
    if written is None:
        return say("step.written-plain", instance=instance(step))
    return say("step.written", instance=instance(step), variable=written[0], value=written[1])


def _gate_passed(story: Story) -> Markup | None:
    event = story.entry.event
    if not isinstance(event, e.GatePassed):
        return None
    said = _healthy(story, event) if event.gate == "health" else _gate(event)
    if said is None or event.part == "do":
        return said
    return say("step.undo-prefix", said=said)


def _healthy(story: Story, event: e.GatePassed) -> Markup:
    service = named(story.change.plan, event.instance)
    if event.waited_s is None or event.incarnation is None:
        return say("step.healthy-plain", service=service)
    pid, port = event.incarnation.main_pid, story.port(event.instance.split("@")[0])
    progress = story.change.undo if event.part == "undo" else story.change.do
    owned = (event.index, "port") in progress.gates
    if port is None or not owned:
        return say("step.healthy-unowned", service=service, waited_s=event.waited_s, pid=pid)
    return say("step.healthy", service=service, waited_s=event.waited_s, pid=pid, port=port)


def _gate(event: e.GatePassed) -> Markup | None:
    """On the way forward these gates are told with the proof; an undo has none, so here they are told one by one.

    That an instance is back is told when it is: the proof comes much later.
    """
    if event.gate == "admitted":
        return reasons(event.verdict.findings)
    if (
        event.part == "do"
        or event.gate not in {"environment", "reported", "version", "contract", "canary"}
        or not event.verdict.findings
    ):
        return None
    return say("step.gate-passed", instance=event.instance, said=reasons(event.verdict.findings[:1]))


def _gate_failed(story: Story) -> Markup | None:
    event = story.entry.event
    if not isinstance(event, e.GateFailed):
        return None
    said = say(
        "step.gate-failed",
        instance=event.instance,
        gate=event.gate,
        answer=event.verdict.answer,
        said=reasons(event.verdict.findings),
    )
    return said if event.part == "do" else say("step.undo-prefix", said=said)


def _undo_started(story: Story) -> Markup | None:
    event = story.entry.event
    if not isinstance(event, e.UndoStarted):
        return None
    if event.actor is not None:
        by = say("step.undo-started-by" if _undoes(story) else "step.stopped-by", actor=event.actor.id)
        return joined([by, *mixed_now(story.change), *rolling.brought_back(story.change)])
    why = say("step.undo-started", why=_gate_named(story, event.findings) or reasons(event.findings))
    return joined([why, *mixed_now(story.change), *rolling.brought_back(story.change)])


def _undo_asked(story: Story) -> Markup | None:
    said = lines.by("step.undo-asked")(story)
    return None if said is None else joined([said, *rolling.brought_back(story.change)])


def _abort_asked(story: Story) -> Markup | None:
    event = story.entry.event
    if not isinstance(event, e.AbortAsked):
        return None
    return say("step.abort-asked" if _undoes(story) else "step.abort-asked-restart", actor=event.actor.id)


def _undoes(story: Story) -> bool:
    """Whether there is something to undo: not where no value changes."""
    return story.change.plan is None or bool(story.change.plan.undo)


def _gate_named(story: Story, findings: tuple[Finding, ...]) -> Markup | None:
    """The gate whose failure is this reason, where the line before has told it in full."""
    kinds = (e.GateFailed, e.CanaryFailed)
    failed = next((x.event for x in reversed(story.entries) if isinstance(x.event, kinds)), None)
    if failed is None or failed.verdict.findings != findings:
        return None
    if isinstance(failed, e.CanaryFailed):
        return say("canary.named", instances=", ".join(failed.instances))
    return say("step.gate-named", instance=failed.instance, gate=failed.gate)


def _held(story: Story) -> Markup | None:
    """What was read and expected, then what a person can do."""
    event = story.entry.event
    if not isinstance(event, e.Held):
        return None
    why = _gate_named(story, event.findings) or reasons(event.findings)
    return joined([say("step.held", why=why), *mixed_now(story.change), held_next(story.change)])


def _with_mixed(told: lines.Line) -> lines.Line:
    """The line of an end, and which replica has what where they differ."""

    def said(story: Story) -> Markup | None:
        found = told(story)
        return None if found is None else joined([found, *mixed_now(story.change)])

    return said


def _proved(story: Story) -> Markup | None:
    event = story.entry.event
    if not isinstance(event, e.Proved):
        return None
    return say("step.proof", said=proof_line(event, story.canary(), story.probe()))


def _probed(story: Story) -> Markup | None:
    event = story.entry.event
    return probe_line(event.probe) if isinstance(event, e.Probed) else None


def _bake_started(story: Story) -> Markup | None:
    event = story.entry.event
    return say("bake.started", until=event.until) if isinstance(event, e.BakeStarted) else None


def _queued(story: Story) -> Markup | None:
    event = story.entry.event
    return queued(event) if isinstance(event, e.Queued) else None


TABLE: dict[str, lines.Line] = {
    "asked": lines.nothing,
    "planned": _planned,
    "refused": lines.to(lines.why("end.refused")),
    "nothing_to_do": lines.to(lines.why("end.nothing-to-do")),
    "replan": lines.why("step.replan"),
    "approval_given": click_lines.approval,
    "click_refused": click_lines.click_refused,
    "reminded": _reminded,
    "ratified": lines.to(lines.by("step.ratified")),
    "ratify_reminded": emergency.reminded_line,
    "lapsed": emergency.lapsed_line,
    "denied": lines.to(lines.by("step.denied")),
    "expired": lines.to(lambda _: say("step.expired")),
    "queued": _queued,
    "rebased": lines.why("step.rebased"),
    "started": _started,
    "step_started": rolling.wave,
    "step_done": _step_done,
    "gate_passed": _gate_passed,
    "gate_failed": _gate_failed,
    "undo_started": _undo_started,
    "abort_asked": _abort_asked,
    "retry_asked": lines.by("step.retry-asked"),
    "undo_asked": _undo_asked,
    "keep_chosen": lines.to(_with_mixed(lines.by("step.kept"))),
    "held": lines.to(_held),
    "unknown": lines.why("step.unknown"),
    "canary_started": rolling.started,
    "canary_passed": rolling.passed,
    "canary_failed": rolling.failed,
    "proved": _proved,
    "bake_started": _bake_started,
    "probed": _probed,
    "baked": lines.why("bake.done"),
    "succeeded": lines.to(_with_mixed(succeeded)),
    "rolled_back": lines.to(_with_mixed(lines.why("end.rolled-back"))),
    "aborted": lines.to(_with_mixed(lines.why("end.aborted"))),
    "failed": lines.to(_with_mixed(lines.why("end.failed"))),
    **dict.fromkeys(ASIDE, lines.nothing),  # what is recorded beside changes has messages of its own
}
