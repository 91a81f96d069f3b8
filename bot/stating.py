"""Statements about causes as they are heard: judged and recorded, and what the person is told."""

from __future__ import annotations

from collections.abc import Callable

from bot.cards import answers
from bot.cards.kit import Card
from bot.causes import cause_line
from bot.markup import Markup
from bot.messages import say, sentence
from bot.questions import Looking
from policies.errors import NotFound
from policies.finding import Finding
from policies.intents import Actor, DisputeStatement, StateCause, Where
from workers.statements import Told

Said = StateCause | DisputeStatement


class Stating:
    """`looks` is called when a statement has to be judged."""

    def __init__(self, looks: Callable[[], Looking]) -> None:
        self._looks = looks

    def said(self, said: Said, actor: Actor, where: Where, key: str | None) -> Told | Finding:
        """Judge and record it; a finding of effect `refuse` where it cannot be."""
        try:
            if isinstance(said, StateCause):
                return self._looks().truth.state(said, actor, where, key=key)
            return self._looks().truth.dispute(said, actor, key=key)
        except NotFound:
            if isinstance(said, StateCause):
                return Finding(code="click.no-such-change", effect="refuse", values={"change": said.of})
            return Finding(code="statement.unknown", effect="refuse", values={"statement": said.statement})


def receipt(said: Said, found: Told | Finding, echo: list[Markup]) -> Card:
    """What the person alone is told; everybody sees the statement where it stands."""
    if isinstance(found, Finding):
        return answers.told(*echo, sentence(found))
    line = cause_line(found.standing.judged.verdict)
    name = found.statement.id
    if isinstance(said, DisputeStatement):
        verdict = say("statement.struck") if found.standing.struck else say("statement.holds-on")
        return answers.told(*echo, say("statement.receipt-dispute", statement=name, said=line), verdict)
    code = "statement.receipt" if found.statement.where.channel else "statement.receipt-told"
    return answers.told(*echo, say(code, statement=name, said=line))
