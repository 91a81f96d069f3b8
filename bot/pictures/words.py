"""What a picture shows, in words and from the same numbers: the text for people who do not see it."""

from __future__ import annotations

from policies.abtest.judgement import Judgement, PointJudgement
from policies.bench.metrics import better, family, short
from policies.errors import OpsError

MOST_TOLD = 12
MOST_CHARACTERS = 900  # Source: files.getUploadURLExternal refuses more than 1000 (`alt_txt_too_large`)


class NothingToDraw(OpsError):
    """The judgement has no load that both arms have, or no runs."""


def word(name: str) -> str:
    """A verdict as people read it."""
    return name.replace("_", " ")


def percent(ratio: float) -> str:
    """The change of a ratio with its sign: `+12.8 %`; two digits below a tenth."""
    change = (ratio - 1) * 100
    return f"{change:+.1f} %" if abs(change) >= 0.1 or change == 0 else f"{change:+.2f} %"


def runs_of(point: PointJudgement) -> str:
    """`n=5`, or `n=5 and 4` where the arms have a different number."""
    return f"n={point.n_a}" if point.n_a == point.n_b else f"n={point.n_a} and {point.n_b}"


def more_loads(count: int) -> str:
    """What of a sweep is not shown."""
    return f"and {count} more load{'s' if count > 1 else ''}"


def limits(judgement: Judgement) -> tuple[float, float] | None:
    """The ratios of B to A where worse begins to count, and where better does; None for a metric without direction."""
    kind = family(judgement.metric)
    if kind is None or better(judgement.metric) is None:
        return None
    margin = judgement.margins.of(kind)
    useful = 1 + judgement.margins.useful
    return (1 - margin, useful) if judgement.better == "higher" else (1 + margin, 1 / useful)


def effect_words(judgement: Judgement, about: str = "") -> str:
    """What the picture of the effect shows."""
    head = f"{word(judgement.verdict)}: {short(judgement.metric)}, {judgement.better} is better"
    told = [_point(point) for point in judgement.points[:MOST_TOLD]]
    told += _rest(len(judgement.points) - len(told))
    return _fitting(f"{f'{about}: ' if about else ''}{head}. {'; '.join(told)}.")


def runs_words(judgement: Judgement, about: str = "") -> str:
    """What the picture of the runs shows."""
    told = []
    for point in judgement.points[:MOST_TOLD]:
        arms = [f"{name} {', '.join(f'{v:.4g}' for v in runs)}" for name, runs in arms_of(point) if runs]
        told.append(f"{point.load.label}: {'; '.join(arms)}")
    told += _rest(len(judgement.points) - len(told))
    how = "taking turns" if judgement.interleaved else "each arm in its own order"
    head = f"runs in {judgement.unit or 'the unit of the file'}, {how}"
    return _fitting(f"{f'{about}: ' if about else ''}{head}. {'. '.join(told)}.")


def arms_of(point: PointJudgement) -> tuple[tuple[str, tuple[float, ...]], tuple[str, tuple[float, ...]]]:
    """The runs of A and of B in the order in which they ran."""
    return ("A", point.runs_a), ("B", point.runs_b)


def _point(point: PointJudgement) -> str:
    head = f"{point.load.label} {percent(point.ratio)}"
    if point.ci_low is None or point.ci_high is None:
        return f"{head}, {runs_of(point)}, no interval, {word(point.klass)}"
    interval = f"95 % interval {percent(point.ci_low)} to {percent(point.ci_high)}"
    return f"{head}, {interval}, {runs_of(point)}, {word(point.klass)}"


def _rest(count: int) -> list[str]:
    return [more_loads(count)] if count > 0 else []


def _fitting(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
