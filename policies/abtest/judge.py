"""The judge: validity first, then statistics, then one word for the whole comparison.

Interleaved runs: paired t on logs; otherwise Welch's t on logs. One run an arm has no interval; two have one and stay
`weak`. "Improves" at one of several points is adjusted by Holm; "no worse" has to hold at each up to today's load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from policies.abtest.arms import Point, Values, points, without_first
from policies.abtest.comparison import comparison_findings
from policies.abtest.drift import drift_findings
from policies.abtest.estimate import Estimate, estimated, geometric_mean, holm
from policies.abtest.judgement import Judgement, Margins, PointJudgement, SourceFile, Word
from policies.abtest.prefix_cache import CacheUse, cache_findings
from policies.abtest.telling import told
from policies.abtest.trade import trade_findings
from policies.abtest.validity import point_findings
from policies.bench.metrics import Better, better, family
from policies.bench.run import Problem, Run
from policies.finding import Effect, Finding

ALPHA = 0.05
WEAK_RUNS = 2
MOST_NAMES = 12


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the two arms. `today` is the highest concurrency of today's load; None judges every point."""

    metric: str = "output_throughput"
    interleaved: bool = False
    margins: Margins = field(default_factory=Margins)
    today: int | None = None
    cache: CacheUse | None = None


@dataclass(frozen=True, slots=True)
class _Judged:
    point: Point
    estimate: Estimate | None
    judgement: PointJudgement


def judge(a: Sequence[Run], b: Sequence[Run], question: Question, unread: Sequence[Problem] = ()) -> Judgement:
    """What the runs of B show against those of A. Runs of a load are in the order in which they were made.

    `unread`: what could not be read of the files that the runs are from; a run that is missing is no run left out.
    """
    metric = question.metric
    way = better(metric)
    unit = next((run.metrics[metric].unit for run in (*a, *b) if metric in run.metrics), "")
    unusable = [*_unread(unread), *_unusable(a, b, metric)]
    if way is None or any(f.code != "abtest.unread" for f in unusable):
        return _judgement(question, way or "higher", unit, (), unusable, "invalid", a, b)
    common, alone = points(a, b)
    kept = [without_first(point, metric, way) for point in common]
    problems = [*unusable, *comparison_findings(a, b, alone, len(common))]
    for point in kept:
        problems += point_findings(point, metric, cache_known=question.cache is not None)
    problems += _cached(kept, question.cache)
    broken = any(f.effect == "refuse" for f in problems)
    judged = _judge_points(kept, question, way, broken=broken)
    problems += _runs(judged, question)
    for one in judged:
        if one.estimate is not None:
            problems += drift_findings(one.point, metric, one.estimate, interleaved=question.interleaved)
    traded = [] if broken else _traded(kept, question)
    problems += traded
    verdict = _verdict([o.judgement for o in judged], problems, question, traded=bool(traded))
    return _judgement(question, way, unit, tuple(o.judgement for o in judged), problems, verdict, a, b)


def _unread(problems: Sequence[Problem]) -> list[Finding]:
    if not problems:
        return []
    return [_finding("unread", "refuse", {"n": len(problems), "first": str(problems[0])})]


def _unusable(a: Sequence[Run], b: Sequence[Run], metric: str) -> list[Finding]:
    """No runs, no such metric, no direction or a zero: nothing can be computed."""
    found: list[Finding] = []
    for name, runs in (("A", a), ("B", b)):
        if not runs:
            found.append(_finding("no-runs", "refuse", {"arm": name}))
    if better(metric) is None:
        return [*found, _finding("no-direction", "refuse", {"metric": metric})]
    for name, runs in (("A", a), ("B", b)):
        lacking = [run for run in runs if metric not in run.metrics]
        if lacking:
            known = sorted({m for m in lacking[0].metrics if better(m) is not None})
            values: Values = {"metric": metric, "arm": name, "file": lacking[0].file}
            found.append(_finding("no-metric", "refuse", {**values, "known": ", ".join(known[:MOST_NAMES]) or "none"}))
        zero = next((r for r in runs if metric in r.metrics and r.metrics[metric].value == 0), None)
        if zero is not None:
            found.append(_finding("zero", "refuse", {"metric": metric, "arm": name, "file": zero.file}))
    return found


def _values(runs: Sequence[Run], metric: str) -> list[float]:
    return [run.metrics[metric].value for run in runs]


def _judge_points(kept: Sequence[Point], question: Question, way: Better, *, broken: bool) -> list[_Judged]:
    judged: list[_Judged] = []
    for point in kept:
        a, b = _values(point.a, question.metric), _values(point.b, question.metric)
        left_out = _values(point.dropped, question.metric)
        estimate = estimated(a, b, interleaved=question.interleaved)
        word: Word = "observed" if point.n == 1 else "invalid" if broken else "weak"
        shown = PointJudgement(
            load=point.load,
            n_a=len(point.a),
            n_b=len(point.b),
            runs_a=tuple(a),
            runs_b=tuple(b),
            left_out_a=left_out[0] if left_out else None,
            left_out_b=left_out[1] if left_out else None,
            a=geometric_mean(a),
            b=geometric_mean(b),
            ratio=estimate.ratio,
            klass=word,
        )
        judged.append(_Judged(point, None if broken else estimate, shown))
    if broken:
        return judged
    tested = [i for i, one in enumerate(judged) if one.point.n > WEAK_RUNS]
    useful = 1 + question.margins.useful
    towards = [_towards(judged[i].estimate, way) for i in tested]
    adjusted = dict(zip(tested, holm([e.p_beyond(useful) for e in towards]), strict=True))
    return [_with_interval(one, adjusted.get(i), question, way) for i, one in enumerate(judged)]


def _towards(estimate: Estimate | None, way: Better) -> Estimate:
    """The estimate turned so that more is better."""
    known = estimate or Estimate(0.0, None, 1)
    return known if way == "higher" else known.flipped()


def _with_interval(one: _Judged, p_improves: float | None, question: Question, way: Better) -> _Judged:
    estimate = one.estimate
    if estimate is None or estimate.interval is None or estimate.bounds is None:
        return one
    low, high = estimate.interval
    bound = estimate.bounds[0] if way == "higher" else estimate.bounds[1]
    update: dict[str, float | str | None] = {"ci_low": low, "ci_high": high, "bound": bound, "p_improves": p_improves}
    if p_improves is not None:
        update["klass"] = _class(estimate, p_improves, question, way)
    return replace(one, judgement=one.judgement.model_copy(update=update))


def _class(estimate: Estimate, p_improves: float, question: Question, way: Better) -> Word:
    """The word of a point with three runs or more."""
    towards = _towards(estimate, way)
    interval, bounds, kind = towards.interval, towards.bounds, family(question.metric)
    if interval is None or bounds is None or kind is None:
        return "observed"
    margin = question.margins.of(kind)
    # of a latency the margin is on the latency itself: 5 % more is a ratio of 1 / 1.05 towards better
    worst = 1 - margin if way == "higher" else 1 / (1 + margin)
    if interval[1] < 1 - question.margins.useful:
        return "regresses"
    if p_improves < ALPHA:
        return "improves"
    return "no_worse" if bounds[0] > worst else "inconclusive"


def _verdict(
    judged: Sequence[PointJudgement], problems: Sequence[Finding], question: Question, *, traded: bool
) -> Word:
    """One word: the weakest of all points up to today's load."""
    if any(f.effect == "refuse" for f in problems) or not judged:
        return "invalid"
    today = question.today
    sizes = [p.load.concurrency for p in judged]
    if today is not None and not any(size is not None and size >= today for size in sizes):
        return "outside"
    asked = [p for p in judged if today is None or p.load.concurrency is None or p.load.concurrency <= today]
    words = {p.klass for p in (asked or judged)}
    if "regresses" in words:
        return "trade_off" if "improves" in words else "regresses"
    for word in ("inconclusive", "observed", "weak"):
        if word in words:
            return word
    if traded:
        return "trade_off"
    if any(f.effect == "warn" for f in problems):
        return "weak"
    return "improves" if "improves" in words else "no_worse"


def _runs(judged: Sequence[_Judged], question: Question) -> list[Finding]:
    """What the number of runs and their order allow to say."""
    found: list[Finding] = []
    single = [o.point.load.label for o in judged if o.point.n == 1]
    double = [o.point.load.label for o in judged if o.point.n == WEAK_RUNS]
    if single:
        found.append(_finding("one-run", "note", {"points": ", ".join(single)}))
    if double:
        found.append(_finding("two-runs", "note", {"points": ", ".join(double)}))
    repeated = [o for o in judged if o.point.n > 1]
    if question.interleaved:
        for one in repeated:
            if len(one.point.a) != len(one.point.b):
                values: Values = {"point": one.point.load.label, "a": len(one.point.a), "b": len(one.point.b)}
                found.append(_finding("unpaired", "warn", values))
    elif repeated:
        found.append(_finding("not-interleaved", "note", {}))
    return found


def _traded(kept: Sequence[Point], question: Question) -> list[Finding]:
    turns = question.interleaved
    return [f for p in kept for f in trade_findings(p, question.metric, question.margins, interleaved=turns)]


def _cached(kept: Sequence[Point], use: CacheUse | None) -> list[Finding]:
    """The counters are of whole arms: said once, however many points there are."""
    found: list[Finding] = []
    for point in kept:
        found += [finding for finding in cache_findings(use, point.load) if finding not in found]
    return found


def _finding(code: str, effect: Effect, values: Values) -> Finding:
    return Finding(code=f"abtest.{code}", effect=effect, values=values)


def _judgement(
    question: Question,
    way: Better,
    unit: str,
    judged: tuple[PointJudgement, ...],
    problems: Sequence[Finding],
    verdict: Word,
    a: Sequence[Run],
    b: Sequence[Run],
) -> Judgement:
    files = dict.fromkeys([*((r.file, r.sha256, "A") for r in a), *((r.file, r.sha256, "B") for r in b)])
    return Judgement(
        verdict=verdict,
        metric=question.metric,
        unit=unit,
        better=way,
        interleaved=question.interleaved,
        margins=question.margins,
        today=question.today,
        points=judged,
        problems=told(problems),
        files=tuple(SourceFile(file=f, sha256=s, arm="A" if arm == "A" else "B") for f, s, arm in files),
    )
