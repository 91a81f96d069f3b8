"""What is read at the moment at which a knob is blamed, and what else was begun since its value came."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypedDict

from policies import events as e
from policies.blame import Beside, Blame, claims_of, guilt_of, if_guilty
from policies.causes.claim import Claim
from policies.causes.verdict import Verdict
from policies.errors import NotFound
from policies.finding import Finding
from policies.intents import RevertKnob
from workers.blamed import BlamedChanges
from workers.judging import Judging, Span
from workers.measuring import Measuring

if TYPE_CHECKING:
    from workers.wiring import Wiring

MOST_BESIDE = 20
DAY_S = 86_400.0


class Since(TypedDict):
    """Fields of a Blame that say what changed since the blamed value came."""

    since: float | None
    brought_by: str | None
    beside: tuple[Beside, ...]
    beside_left: int


def blame(wiring: Wiring, measuring: Measuring, asked: e.Asked, change_id: str) -> Blame | None:
    """What is read at the moment at which a knob is blamed; None for an intent that blames none."""
    intent, fleet = asked.intent, wiring.fleet
    knob = fleet.knobs.get(intent.knob) if isinstance(intent, RevertKnob) else None
    if not isinstance(intent, RevertKnob) or knob is None:
        return None
    claims, unread = claims_of(intent.because, intent.citing, fleet)
    effect = measuring.look()
    baseline = measuring.before(effect)
    judging = Judging(fleet, measuring, wiring.clock)
    span = Span(effect, baseline, ongoing=True)
    seen = judging.look((Claim(if_guilty(knob)), *claims), span, knob.on)
    changes = BlamedChanges(wiring, measuring)
    verdicts: list[Verdict] = []
    for claim in claims:
        named = _named(changes, claim, change_id) if claim.change is not None else claim
        if isinstance(named, Finding):
            unread = (*unread, named)
        elif named.change is not None:
            verdicts.append(changes.judged(named, knob.on, effect).verdict)
        else:
            verdicts.append(seen.verdict(named))
    since = _since(wiring, knob.name, change_id)
    return Blame(
        at=max(wiring.clock(), effect.end),
        effect=effect,
        baseline=baseline,
        guilt=guilt_of(knob, seen.effect),
        state=seen.effect.state,
        load=measuring.load(seen.effect),
        verdicts=tuple(verdicts),
        unread=unread,
        **since,
    )


def _named(changes: BlamedChanges, claim: Claim, own: str) -> Claim | Finding:
    """The claim with the change that is meant, or that there is none."""
    try:
        named = changes.named(claim, None, without=(own,))
    except NotFound:
        return Finding(code="click.no-such-change", effect="note", values={"change": claim.change})
    return named if named.change is not None else Finding(code="claim.no-last-change", effect="note")


def _since(wiring: Wiring, knob: str, change_id: str) -> Since:
    """When the blamed value came, and what else was begun since; in the last day where that is not recorded."""
    found = wiring.client.brought(knob, sys.maxsize)
    came = found[1] if found is not None else None
    brought_by = came.subject if came is not None else None
    since = came.at if came is not None else wiring.clock() - DAY_S
    beside: list[Beside] = []
    left = 0
    for entry in reversed(wiring.ledger.index("changes")):
        if entry.at < since:
            break
        change = wiring.ledger.load(entry.subject)
        if change.id in {change_id, brought_by} or not change.started_at or change.asked is None:
            continue
        if len(beside) == MOST_BESIDE:
            left += 1
            continue
        beside.append(Beside(change=change.id, said=change.asked.normalised[:200], at=change.started_at))
    told = came.at if came is not None else None
    return {"since": told, "brought_by": brought_by, "beside": tuple(reversed(beside)), "beside_left": left}
