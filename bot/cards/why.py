"""`why CHANGE|SERVICE`: what the metrics say, which causes hold, which are refuted, and what is not known."""

from __future__ import annotations

from bot.cards.blame import blame_lines
from bot.cards.kit import Block, Card, made, section
from bot.cards.statement import struck
from bot.cards.suspicion import settled
from bot.causes import cause_line, readings, reason_line, state_line
from bot.markup import Markup, joined
from bot.messages import say, sentence
from policies.causes.verdict import Verdict
from policies.citation import Citation
from policies.states.state import State
from workers.statements import Told
from workers.truth import Why

MOST_SAID = 6
MOST_WHY = 2


def why_card(why: Why) -> Card:
    """The answer."""
    head = say("why.head", about=why.about)
    parts: list[list[Markup]] = [[Markup(f"*{head}*"), *_change(why)], _measured(why), _causes(why), _said(why)]
    parts.append([say("why.not-covered")])
    body: list[Block] = [section(*part) for part in parts if part]
    return made(head, body)


def _change(why: Why) -> list[Markup]:
    change = why.change
    if change is None or change.asked is None:
        return []
    state = change.state.replace("_", " ")
    return [say("why.change", change=change.id, state=state, said=change.asked.normalised[:200])]


def _measured(why: Why) -> list[Markup]:
    judged = why.judged
    lines = [say("why.service-state", service=name, said=state_line(state)) for name, state in why.states.items()]
    lines += [readings(_of(state)) for state in why.states.values() if state.citations]
    if not why.states:
        lines.append(say("why.no-state"))
    load = say("statement.load", load=readings(judged.load)) if judged.load else say("statement.not-measured")
    lines.append(joined([load, say("statement.window", start=judged.effect.start, end=judged.effect.end)]))
    planned = why.change.planned if why.change is not None else None
    if planned is not None and planned.blame is not None:
        lines += blame_lines(planned.blame, planned.plans[0].knob or "" if planned.plans else "")
    return lines


def _of(state: State) -> tuple[Citation, ...]:
    """The readings of the last look; of an engine that stands still those of both."""
    last = max(citation.time for citation in state.citations)
    return state.citations if state.word == "hung" else tuple(c for c in state.citations if c.time == last)


def _causes(why: Why) -> list[Markup]:
    if not why.verdicts:
        return [say("cause.not-established"), say("why.no-catalogue")]
    holding = [v for v in why.verdicts if v.word in {"verified", "consistent"}]
    lines = [joined([cause_line(v), reason_line(v)]) for v in holding] or [say("cause.not-established")]
    lines += [
        say("why.refuted", name=v.name, measured=readings(v.citations), why=sentence(v.reason))
        for v in why.verdicts
        if v.word == "refuted"
    ]
    return lines + [say("why.unknown", name=v.name, why=_unknown(v)) for v in why.verdicts if v.word == "unverified"]


def _unknown(verdict: Verdict) -> Markup:
    return joined([sentence(verdict.reason), *(sentence(f) for f in verdict.unknown[:MOST_WHY])], "; ")


def _said(why: Why) -> list[Markup]:
    lines = [statement_line(told) for told in why.statements[-MOST_SAID:]]
    kept = why.suspicion
    if kept is not None:
        suspicion = kept.suspicion
        if kept.standing.word == "open":
            lines.append(say("suspicion.opened", suspicion=suspicion.id, said=say("cause.not-established")))
        else:
            lines.append(settled(suspicion, kept.standing))
    return lines


def statement_line(told: Told) -> Markup:
    """Who stated what, and what became of it."""
    statement, standing = told.statement, told.standing
    if statement.actor is None:
        said = say("why.said-probe", statement=statement.id)
    else:
        words = (statement.said.name or statement.said.text or "")[:120]
        word = standing.judged.verdict.word
        said = say("why.said", statement=statement.id, actor=statement.actor.id, words=words, word=word)
    return say("why.struck", said=struck(said)) if standing.struck else said
