"""What a Prometheus answered for a window, as readings. Prometheus fills five minutes with the last sample that it has:
a moment whose samples are too old, or that lacks an instance, gives no reading here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from policies.finding import Finding
from policies.metrics.collected import Collected
from policies.metrics.evaluate import LE, Answer, Point
from policies.metrics.histogram import bucket_quantile
from policies.metrics.history import INSTANCE
from policies.metrics.measured import Measured
from policies.metrics.nodes import NAME
from policies.metrics.scoped import Quantile
from policies.metrics.values import Value

# Source: Prometheus' own default scrape interval is one minute; with half of it again nothing was missed
FRESH_S = 90.0
Times = Mapping[float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """One series of an answer: its labels, and values by the moment of the evaluation."""

    labels: Mapping[str, str]
    values: Times


@dataclass(frozen=True, slots=True)
class Answered:
    """Everything that was asked for one window. newest: by series name, the time of the oldest sample that counts."""

    lines: Sequence[Line]
    newest: Mapping[str, Sequence[Line]] = field(default_factory=dict)
    buckets: Sequence[tuple[Quantile, Sequence[Line]]] = ()
    warnings: tuple[str, ...] = ()


def readings(
    window: Collected,
    answered: Answered,
    *,
    moments: Sequence[float],
    known_as: Mapping[str, str],
    instances: Sequence[str],
    fresh_s: float = FRESH_S,
) -> Measured:
    """The readings of a window at these moments. known_as: what Prometheus calls an instance -> service@host."""
    for at in moments:
        why = _lacking(window, answered, at, known_as, instances, fresh_s)
        if why is not None:
            window.left_out(why)
        else:
            window.take(at, _answer(window, answered, at))
    if not moments:
        window.problem = window.nothing()
    warned = window.finding("metrics.warned", warning="; ".join(answered.warnings)) if answered.warnings else None
    return window.told(warned)


def _lacking(
    window: Collected,
    answered: Answered,
    at: float,
    known_as: Mapping[str, str],
    instances: Sequence[str],
    fresh_s: float,
) -> Finding | None:
    """Why a moment cannot be answered: an instance lacks what others of its service have, or samples are old."""
    for name, lines in answered.newest.items():
        having = {
            known_as.get(line.labels.get(INSTANCE, ""), ""): line.values[at] for line in lines if at in line.values
        }
        services = {instance.partition("@")[0] for instance in having}
        for instance in instances:
            if instance not in having and instance.partition("@")[0] in services:
                return window.finding("metrics.partial", instance=instance, series=name, at=at)
        oldest = min(having.values(), default=at)
        if at - oldest > fresh_s:
            return window.finding("metrics.stale", last=oldest, age_s=at - oldest)
    return None


def _answer(window: Collected, answered: Answered, at: float) -> Answer | Finding:
    points = [Point(line.labels, Value(line.values[at])) for line in answered.lines if at in line.values]
    for quantile, lines in answered.buckets:
        ours = _quantile(window, quantile, lines, at)
        if isinstance(ours, Finding):
            return ours
        if quantile.whole and ours:
            points = list(ours)
        elif any(point.value.beyond for point in ours):
            return _past(window, quantile)
    return points


def _quantile(window: Collected, quantile: Quantile, lines: Sequence[Line], at: float) -> Answer | Finding:
    """Our own quantiles of the buckets, which tell when one lies beyond them; none for native histograms."""
    groups: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    for line in lines:
        if at in line.values and LE in line.labels:
            rest = tuple(sorted((k, v) for k, v in line.labels.items() if k not in {LE, NAME}))
            groups.setdefault(rest, []).append((float(line.labels[LE]), line.values[at]))
    if groups and quantile.q is None:
        return _past(window, quantile)
    return [Point(dict(key), bucket_quantile(quantile.q or 0.0, buckets)) for key, buckets in groups.items()]


def _past(window: Collected, quantile: Quantile) -> Finding:
    return window.finding("metrics.past-bounds", construct=f"the quantile of {quantile.buckets}")
