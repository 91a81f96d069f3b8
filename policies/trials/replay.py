"""Changes of the ledger judged again by another fleet's policy, with what was known when each was decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from policies.applicability import Holds
from policies.events import Asked, Entry, EvidenceRecorded, NothingToDo, Planned, Refused, Succeeded
from policies.finding import Finding
from policies.fleet import Fleet
from policies.intents import Intent, KnobIntent
from policies.trials.trial import Ruling, Trial, rule_on

# families of findings that are policy's; others tell what a host or a plan said
POLICY = ("rule.", "evidence.", "freeze.", "value.", "ticket.")
GOALS = frozenset({
    "plan.no-such-knob", "plan.no-such-order", "plan.scope-is-two-things", "plan.scope-without-knob",
    "plan.already-taken-away", "plan.reverts-to-two-values", "plan.nothing-to-restore", "plan.no-such-scope",
    "plan.no-such-restart-order", "plan.scope-not-in-order", "deploy.no-such-service", "deploy.not-declared",
    "deploy.no-such-order", "deploy.bad-ref", "deploy.no-version-in-ref",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Past:
    """A change as it was asked for and decided. `assumed`: its live values are those of the last success before it."""

    change: str
    trial: Trial
    decided: Ruling
    assumed: bool


@dataclass(frozen=True, slots=True)
class Skipped:
    """A change on which policy had no word: `why` is what was found instead."""

    change: str
    why: Finding


@dataclass(frozen=True, slots=True)
class Replayed:
    """A past change with the new ruling."""

    past: Past
    got: Ruling

    @property
    def same(self) -> bool:
        """The same answer, from as many people of the same role."""
        old, new = self.past.decided, self.got
        return (old.outcome, old.approvals, old.by if old.approvals else None) == (
            new.outcome,
            new.approvals if new.outcome != "refused" else 0,
            new.by if new.outcome != "refused" and new.approvals else None,
        )


def replay(entries: Iterable[Entry], fleet: Fleet) -> list[Replayed | Skipped]:
    """Every change that was decided, oldest first, as this fleet's policy would have decided it then."""
    known = tuple(entries)
    by_change: dict[str, list[Entry]] = {}
    for entry in known:
        by_change.setdefault(entry.subject, []).append(entry)
    found: list[Replayed | Skipped] = []
    for change, mine in by_change.items():
        past = _past(change, mine, known)
        if past is not None:
            found.append(past if isinstance(past, Skipped) else Replayed(past, rule_on(past.trial, fleet)))
    return found


def _past(change: str, mine: Sequence[Entry], known: Sequence[Entry]) -> Past | Skipped | None:
    """None: no change, or one that is not decided yet. Planned again, the last plan is what was decided."""
    first = mine[0].event
    if not isinstance(first, Asked):
        return None
    plans = [entry for entry in mine if isinstance(entry.event, Planned)]
    others = [entry for entry in mine if isinstance(entry.event, Refused | NothingToDo)]
    if not plans and not others:
        return None
    decided = (plans or others)[-1]
    ruling = _ruling(decided.event)
    if isinstance(ruling, Finding):
        return Skipped(change, ruling)
    before = [entry for entry in known if entry.seq < decided.seq]
    live, assumed = _live(decided.event, first.intent, before)
    trial = Trial(
        intent=first.intent,
        actor=first.actor,
        now=decided.at,
        live=live,
        history=_history(first.intent, before),
        evidence=tuple(entry.event.record for entry in before if isinstance(entry.event, EvidenceRecorded)),
        holds=_holds(decided.event),
    )
    return Past(change, trial, ruling, assumed)


def _holds(event: object) -> Mapping[str, Holds]:
    """What evidence was worth when it was planned, as far as the plan tells it."""
    return {one.record: one.word for one in event.standings} if isinstance(event, Planned) else {}


def _ruling(event: object) -> Ruling | Finding:
    """What was decided; the first finding when it was not policy that said no, or nothing had to be decided."""
    if isinstance(event, Planned):
        return Ruling("needs_approval" if event.approvals else "allowed", event.findings, event.approvals, event.by)
    findings = event.findings if isinstance(event, Refused | NothingToDo) else ()
    ours = tuple(f for f in findings if f.effect == "refuse" and (f.code.startswith(POLICY) or f.code in GOALS))
    if ours and isinstance(event, Refused):
        return Ruling("refused", ours)
    return findings[0] if findings else Finding(code="policy.no-word", effect="note", values={})


def _live(event: object, intent: Intent, before: Sequence[Entry]) -> tuple[Mapping[str, str | None], bool]:
    if isinstance(event, Planned) and event.plans and event.plans[0].targets:
        return {target.instance: target.now for target in event.plans[0].targets}, False
    live: dict[str, str | None] = {}
    for done in _history(intent, before):
        live |= done.now
    return live, isinstance(intent, KnobIntent)


def _history(intent: Intent, before: Sequence[Entry]) -> tuple[Succeeded, ...]:
    if not isinstance(intent, KnobIntent):
        return ()
    events = (entry.event for entry in before)
    return tuple(event for event in events if isinstance(event, Succeeded) and event.knob == intent.knob)
