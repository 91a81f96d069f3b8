"""Drains and registrations at a router in words: their line in the thread, and what [Details] says of them."""

from __future__ import annotations

from bot.cards.story import Story, instance
from bot.markup import Markup, joined
from bot.messages import say, sentence
from policies.events import StepDone
from policies.plan import AdmitStep, DrainStep, Registration
from policies.routers.away import away


def done(event: StepDone) -> Markup | None:
    """What a drain had to say, or a registration that was none: one that was made has its line when its gate passes."""
    if not event.findings:
        return None
    said = joined([sentence(finding) for finding in event.findings])
    return say("step.undo-prefix", said=said) if event.part == "undo" else said


def still_out(story: Story) -> list[Markup]:
    """Instances that the routers send nothing to for as long as this change stands where it does."""
    return [
        say("drain.away", instance=name, routers=routers) if routers else say("drain.maybe-away", instance=name)
        for name, routers in away(story.entries).items()
    ]


def details(number: int, step: DrainStep | AdmitStep) -> list[Markup]:
    """One line a router."""
    return [_at_router(number, step, at) for at in step.at]


def _at_router(number: int, step: DrainStep | AdmitStep, at: Registration) -> Markup:
    name, worker, router = instance(step), at.worker, at.router
    if isinstance(step, AdmitStep):
        return say("details.admit", n=number, instance=name, worker=worker, router=router)
    over = say("details.drain-hold" if step.over == "hold" else "details.drain-restart")
    limit_s = step.deadline_s
    return say("details.drain", n=number, instance=name, worker=worker, router=router, deadline_s=limit_s, over=over)
