"""A deploy's steps and versions in words: under Details, in the thread, and at the end."""

from __future__ import annotations

from collections.abc import Sequence

from bot.cards.story import instance
from bot.markup import Markup
from bot.messages import say, sentence
from policies.events import StepDone, Succeeded
from policies.plan import CommandStep, Plan, PruneStep, SwitchStep

VersionStep = SwitchStep | CommandStep | PruneStep


def step(number: int, found: VersionStep) -> Markup:
    """A step of the plan in full."""
    name = instance(found)
    if isinstance(found, SwitchStep):
        path, before = found.releases.link, found.before
        if found.to is None:
            return say("details.switch-away", n=number, instance=name, path=path)
        return say("details.switch", n=number, instance=name, path=path, ref=found.to, before=before)
    if isinstance(found, CommandStep):
        argv = " ".join(found.argv)
        return say("details.command", n=number, instance=name, argv=argv, user=found.user, limit_s=found.limit_s)
    protected = ", ".join(found.protect)
    return say("details.prune", n=number, instance=name, keep=found.releases.keep, protected=protected)


def covered(plans: Sequence[Plan]) -> list[Markup]:
    """What the digest covers of a version: the release's manifest, and what is read back."""
    deploy = plans[0].deploy
    if deploy is None:
        return []
    lines = []
    if deploy.manifest_sha256 is not None:
        lines.append(say("details.covers-release", ref=deploy.ref, sha256=deploy.manifest_sha256))
    return lines + [
        say("details.covers-version", instance=v.instance, now=v.now, then=v.then, back=v.back) for v in deploy.versions
    ]


def done(found: VersionStep, event: StepDone) -> Markup | None:
    """The line of a step that was done; None where nothing was there to be taken away."""
    undo, name = event.part == "undo", instance(found)
    if isinstance(found, SwitchStep):
        if undo:
            return say("step.undo-switched", instance=name, ref=found.to)
        return say("step.switched", instance=name, ref=found.to, before=found.before)
    said = sentence(event.findings[0]) if event.findings else say("step.no-reason")
    if isinstance(found, CommandStep):
        code = "step.undo-commanded" if undo else "step.commanded"
        return say(code, instance=name, program=found.argv[0], ref=found.ref or None, said=said)
    gone = event.findings and event.findings[0].values.get("removed", "something")  # what could not be is told
    return say("step.pruned", instance=name, said=said) if gone else None


def ended(end: Succeeded) -> Markup:
    """The end of a deploy that went well."""
    was = sorted({ref for ref in end.was.values() if ref is not None and ref != end.ref})
    told = ", ".join(was) or None
    return say("end.deployed", took_s=end.took_s, service=end.service, ref=end.ref, was=told)
