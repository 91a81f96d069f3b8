"""A revert's reason, judged when it was given: what was read, what speaks against it, and what else changed."""

from __future__ import annotations

from bot.causes import cause_line, readings, reason_line, state_line
from bot.markup import Markup, joined
from bot.messages import say, sentence
from policies.blame import Beside, Blame, Guilt
from policies.states.state import State

MOST_WHY = 3
MOST_BESIDE = 5


def established(blame: Blame | None) -> Markup:
    """The cause on which a revert stands where one is verified, else that none is established."""
    verdict = blame.cause if blame is not None else None
    return cause_line(verdict) if verdict is not None else say("cause.not-established")


def blame_lines(blame: Blame, knob: str) -> list[Markup]:
    """Everything that was read when the knob was blamed, a line each."""
    lines = [_guilt(blame, blame.guilt, knob)] if blame.guilt is not None else [say("blame.no-if-guilty", knob=knob)]
    lines += [say("blame.reason", said=joined([cause_line(v), reason_line(v)])) for v in blame.verdicts]
    lines += [say("blame.unread", said=sentence(finding)) for finding in blame.unread[:MOST_WHY]]
    lines.append(joined([_beside(blame), say("blame.not-covered")]))
    return lines


def spoken_against(blame: Blame | None) -> list[Markup]:
    """In few words what spoke against the knob, for cards of later changes; nothing where nothing did."""
    if blame is None or blame.guilt is None or blame.guilt.word != "fails":
        return []
    return [say("blame.spoke-against", said=_seen(blame))]


def _guilt(blame: Blame, guilt: Guilt, knob: str) -> Markup:
    if guilt.word == "fails":
        return say("blame.against", knob=knob, if_guilty=guilt.if_guilty, said=_seen(blame))
    if guilt.word == "holds":
        return say("blame.seen", knob=knob, if_guilty=guilt.if_guilty, said=_seen(blame))
    why = joined([sentence(finding) for finding in guilt.why[:MOST_WHY]], "; ")
    seen = readings(guilt.citations)
    return say("blame.unknown", if_guilty=guilt.if_guilty, said=joined([why, seen] if why else [seen]))


def _seen(blame: Blame) -> Markup:
    """The readings: of an idle engine all of its last look, as DESIGN has them; else those of the statement."""
    state = blame.state
    if state is not None and state.word == "idle":
        return _idle(state)
    said = [state_line(state)] if state is not None else []
    return joined([*said, readings(blame.guilt.citations if blame.guilt is not None else ())], "; ")


def _idle(state: State) -> Markup:
    at = max((c.time for c in state.citations), default=0.0)
    last = {c.name or c.query: c for c in sorted(state.citations, key=lambda c: c.time)}
    zero = [c for c in last.values() if c.unit == "requests" and not (c.name or c.query).endswith("_total")]
    told = ", ".join(f"{c.name or c.query} {c.value:g}" for c in zero)
    return say("blame.idle", at=at, readings=told)


def _beside(blame: Blame) -> Markup:
    if not blame.beside:
        return say("blame.since-unknown") if blame.since is None else say("blame.alone", since=blame.since)
    told = [_one(one) for one in blame.beside[-MOST_BESIDE:]]
    left = len(blame.beside) - len(told) + blame.beside_left
    if left > 0:
        told.append(say("plan.more-lines", n=left))
    if blame.since is None:
        return joined([say("blame.since-unknown"), say("blame.beside-day", said=joined(told, ", "))])
    return say("blame.beside", since=blame.since, said=joined(told, ", "))


def _one(beside: Beside) -> Markup:
    return say("blame.beside-one", change=beside.change, said=beside.said[:120])
