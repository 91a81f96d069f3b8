"""A statement as it stands in the channel or thread: whose words, what was measured, and what was said against it."""

from __future__ import annotations

from bot.cards import buttons
from bot.cards.kit import Card, actions, cut, made, section
from bot.cards.suspicion import settled
from bot.causes import cause_line, readings, reason_line, state_line
from bot.markup import Markup, joined
from bot.messages import say
from bot.times import clock
from policies.events import StatementDisputed, StatementJudgedAgain
from policies.statement import Judgement, Statement
from workers.statements import Told
from workers.suspicions import Kept

Look = StatementDisputed | StatementJudgedAgain
MOST_WORDS = 300
MOST_OTHERS = 3
MOST_LINE = 2800


def statement_card(told: Told, kept: Kept | None = None) -> Card:
    """The message of a statement. Struck through it keeps its words; what came of the last look stands below them.

    kept: the suspicion of the change that it is about. Where this statement settles it, that is said; where it speaks
    against it, the value is offered back.
    """
    lines = statement_lines(told)
    row = [buttons.dispute(told.statement.id)]
    if kept is not None and kept.standing.by == told.statement.id:
        lines.append(settled(kept.suspicion, kept.standing))
        if kept.standing.is_lost and kept.suspicion.gives_back is not None:
            row.insert(0, buttons.give_back(kept.suspicion))
    return made(joined(lines, "\n"), [section(*lines)], [actions(row)])


def statement_lines(told: Told) -> list[Markup]:
    """Its lines: as made, and below them the disputes and new measurements with what each look came to."""
    said = [head(told.statement), *judged_lines(told.statement.judged)]
    if told.standing.struck:
        said = [struck(line) for line in said]
    for look in told.looks:
        said += [looked_again(told.statement.id, look), *_again(look.judged)]
    if told.looks:
        said.append(say("statement.struck" if told.standing.struck else "statement.holds-on"))
    return said


def head(statement: Statement) -> Markup:
    """Whose words, quoted as theirs; or that it is about a slow probe."""
    if statement.actor is None:
        probe = statement.probe
        if probe is None:
            said = say("statement.of-old-state", change=statement.judged.verdict.name, by=statement.about)
        else:
            said = say("statement.of-probe", took_s=probe.took_s, usual_s=probe.usual_s, n=probe.n)
        return say("statement.id", statement=statement.id, said=said)
    words = (statement.said.name or statement.said.text or "")[:MOST_WORDS]
    if statement.about is None:
        said = say("statement.by", actor=statement.actor.id, words=words)
    else:
        said = say("statement.by-about", actor=statement.actor.id, words=words, change=statement.about)
    if statement.said.citing:
        said = joined([said, say("statement.citing", cited=", ".join(statement.said.citing)[:MOST_WORDS])], ", ")
    return say("statement.id", statement=statement.id, said=said)


def judged_lines(judged: Judgement) -> list[Markup]:
    """What may be said, why, what the readings agree with instead, the state and the load, and the windows."""
    lines = [cause_line(judged.verdict), reason_line(judged.verdict)]
    others = [cause_line(verdict) for verdict in judged.others[:MOST_OTHERS]]
    if others:
        lines.append(say("statement.instead", said=joined(others, "; ")))
    if judged.state is not None:
        lines.append(state_line(judged.state))
    load = say("statement.load", load=readings(judged.load)) if judged.load else say("statement.not-measured")
    lines.append(joined([load, _window(judged)]))
    return lines


def _again(judged: Judgement) -> list[Markup]:
    """What the look after a dispute came to."""
    lines = [say("statement.again", said=cause_line(judged.verdict)), reason_line(judged.verdict)]
    others = [cause_line(verdict) for verdict in judged.others[:MOST_OTHERS]]
    return [*lines, say("statement.instead", said=joined(others, "; "))] if others else lines


def disputed(name: str, dispute: StatementDisputed) -> Markup:
    """Who contests it, with their words as theirs."""
    if dispute.because is None:
        return say("statement.disputed-click", actor=dispute.actor.id, statement=name)
    reason = dispute.because[:MOST_WORDS]
    return say("statement.disputed", actor=dispute.actor.id, statement=name, reason=reason)


def looked_again(name: str, look: Look) -> Markup:
    """Why it was judged once more."""
    if isinstance(look, StatementDisputed):
        return disputed(name, look)
    return say("statement.old-state", statement=name, by=look.change)


def dispute_line(name: str, look: Look, at: float) -> Markup:
    """The trail of a dispute or a new measurement: a line of its own in the thread, with its time."""
    said = say("statement.again", said=cause_line(look.judged.verdict))
    return cut(f"{clock(at)} {joined([looked_again(name, look), said])}", MOST_LINE)


def struck(line: Markup) -> Markup:
    """A line struck through. Slack ends that at a tilde, so there is none inside."""
    return Markup(f"~{line.replace('~', '-')}~") if line else line


def _window(judged: Judgement) -> Markup:
    effect, before, again = judged.effect, judged.baseline, judged.again
    if before is not None and again is not None:
        return say(
            "statement.window-and-again",
            start=effect.start,
            end=effect.end,
            before=before.start,
            before_end=before.end,
            again=again.start,
            again_end=again.end,
        )
    if before is None:
        return say("statement.window", start=effect.start, end=effect.end)
    return say(
        "statement.window-and-before",
        start=effect.start,
        end=effect.end,
        before=before.start,
        before_end=before.end,
    )
