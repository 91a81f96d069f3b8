"""How far the answers were looked at, worded so that it says no more than was measured."""

from __future__ import annotations

from bot.markup import Markup
from bot.messages import say
from policies.correctness import Correctness, Scores


def correctness(seen: Correctness | None) -> list[Markup]:
    """Every level that was looked at; none differing is not none possible: the bound is said with it."""
    if seen is None:
        return [say("evidence.uncompared")]
    told = [*_answers(seen, "evidence.correct")]
    if seen.scores is not None:
        told.append(_scores(seen.scores))
    if seen.endings is not None:
        told.append(say("evidence.endings-alike" if seen.endings.alike else "evidence.endings-differ"))
    return told


def short_correctness(seen: Correctness | None) -> list[Markup]:
    """As `correctness`, in fewer words."""
    if seen is None:
        return [say("evidence.uncompared")]
    told = [*_answers(seen, "evidence.short-correct")]
    return told if seen.scores is None else [*told, _scores(seen.scores)]


def _answers(seen: Correctness, code: str) -> list[Markup]:
    if seen.compared is None:
        return []
    if seen.differing or seen.could_percent is None:
        return [say("evidence.incorrect", differing=seen.differing, compared=seen.compared)]
    return [say(code, differing=0, compared=seen.compared, could=f"{seen.could_percent:.2g}")]


def _scores(scores: Scores) -> Markup:
    low, high = scores.interval
    return say(
        "evidence.scores" if scores.passes else "evidence.scores-not-shown",
        name=scores.name,
        a=f"{scores.a * 100:.1f}",
        b=f"{scores.b * 100:.1f}",
        n=scores.n,
        how="paired" if scores.paired else "not paired",
        points=f"{(scores.b - scores.a) * 100:+.1f}",
        low=f"{low * 100:+.1f}",
        high=f"{high * 100:+.1f}",
        margin=f"{scores.margin * 100:g}",
    )
