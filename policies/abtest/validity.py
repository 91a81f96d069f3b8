"""Is a point a fair comparison: checked before any statistic. Each finding names what differs and both values.

Source: public reports of wrong speed-ups, most of which were broken comparisons and not noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from statistics import fmean

from policies.abtest.arms import EVEN_STARTS, SLOW_STARTS, Point, Values, climb, position, slow_starts
from policies.bench.metrics import family
from policies.bench.run import Run
from policies.finding import Effect, Finding

SAME_TOKENS = 0.02
SAME_FAILED_SHARE = 0.001
LEAST_S = 60.0
LEAST_PER_CLIENT = 5
SATURATED_BELOW = 0.95
SURELY_COLD = 3.0
TOLD_CLIMB = 0.05
TOO_GOOD = 1.5  # a ratio that a knob seldom has and a warm cache often
TTFT_TOO_GOOD = 0.5


def point_findings(point: Point, metric: str, *, cache_known: bool) -> list[Finding]:
    """Everything that speaks against the comparison at this load."""
    return [
        *_warmth(point, metric),
        *_requests(point),
        *_tokens(point),
        *_length(point),
        *_saturation(point, metric),
        *([] if cache_known else _cache_unknown(point, metric)),
    ]


def _finding(code: str, effect: Effect, point: Point, values: Values) -> Finding:
    return Finding(code=f"abtest.{code}", effect=effect, values={"point": point.load.label, **values})


def _warmth(point: Point, metric: str) -> Iterable[Finding]:
    """Run 1 against run 3, and first tokens that waited for a compilation."""
    for name, runs in point.given:
        change = climb(runs[0], runs[1], metric) if len(runs) > 1 else None
        if change is not None and abs(change) >= TOLD_CLIMB:
            word = "climbed" if change > 0 else "fell"
            yield _finding("first-run", "note", point, {"arm": name, "word": word, "percent": _percent(abs(change))})
    if point.dropped:
        yield _finding("left-out", "note", point, {"n": point.n})
    for a, b in zip(point.a, point.b, strict=False):
        in_a, in_b = position(a), position(b)
        if in_a is not None and in_b is not None and in_a != in_b and 1 in (in_a, in_b):
            yield _finding("not-warm-order", "refuse", point, {"a": in_a, "b": in_b})
            break
    slow_a, slow_b = slow_starts(point.a), slow_starts(point.b)
    if slow_a is not None and slow_b is not None:
        slower, other = max(slow_a, slow_b), min(slow_a, slow_b)
        if slower >= SLOW_STARTS and other < EVEN_STARTS:
            # what every repeat shows is no cold start, but no proof of the contrary either
            effect: Effect = "refuse" if slower >= SURELY_COLD and point.n == 1 else "warn"
            yield _finding("not-warm", effect, point, {"a": round(slow_a, 2), "b": round(slow_b, 2)})


def _requests(point: Point) -> Iterable[Finding]:
    """Requests that were refused or dropped make an arm look fast."""
    shares = [_failed_share(runs) for _, runs in point.arms]
    share_a, share_b = shares
    if share_a is not None and share_b is not None:
        if abs(share_a - share_b) > SAME_FAILED_SHARE:
            yield _finding("failed", "refuse", point, {"a": _percent(share_a), "b": _percent(share_b)})
        elif max(share_a, share_b) > 0:
            yield _finding("failed-both", "note", point, {"a": _percent(share_a), "b": _percent(share_b)})
        return
    yield _finding("errors-unknown", "note", point, {"arm": _unknown_arms(share_a, share_b)})
    counts = [sorted({run.completed for run in runs if run.completed is not None}) for _, runs in point.arms]
    if counts[0] and counts[1] and counts[0] != counts[1]:
        yield _finding("completed", "refuse", point, {"a": _listed(counts[0]), "b": _listed(counts[1])})


def _tokens(point: Point) -> Iterable[Finding]:
    """Fewer tokens a request is another load: no ignore-eos, other prompts."""
    for code, of in (
        ("input-tokens", lambda run: run.input_tokens_per_request),
        ("output-tokens", lambda run: run.output_tokens_per_request),
    ):
        a, b = _mean(point.a, of), _mean(point.b, of)
        if a and b and abs(b / a - 1) > SAME_TOKENS:
            yield _finding(
                code, "refuse", point, {"a": round(a, 1), "b": round(b, 1), "percent": f"{(b / a - 1) * 100:+.1f}"}
            )


def _length(point: Point) -> Iterable[Finding]:
    for name, runs in point.arms:
        durations = [run.duration_s for run in runs if run.duration_s is not None]
        if durations and min(durations) < LEAST_S:
            yield _finding("short-run", "warn", point, {"arm": name, "took_s": min(durations), "least_s": LEAST_S})
        completed = [run.completed for run in runs if run.completed is not None]
        least = LEAST_PER_CLIENT * (point.load.concurrency or 0)
        if completed and min(completed) < least:
            yield _finding("few-requests", "warn", point, {"arm": name, "completed": min(completed), "least": least})


def _saturation(point: Point, metric: str) -> Iterable[Finding]:
    """Above what the server can do latencies show the queue, and grow with the length of the run."""
    asked = point.load.request_rate
    if not isinstance(asked, float):
        return
    for name, runs in point.arms:
        reached = _mean(runs, _achieved)
        if reached is not None and reached < SATURATED_BELOW * asked:
            effect: Effect = "note" if family(metric) == "throughput" else "refuse"
            values: Values = {"arm": name, "reached": f"{reached:.4g}", "asked": f"{asked:.4g}", "metric": metric}
            yield _finding("saturated", effect, point, values)


def _cache_unknown(point: Point, metric: str) -> Iterable[Finding]:
    """Without counters a warm prefix cache cannot be told from a better server; what it would look like is."""
    seeds = {run.identity.seed for run in (*point.a, *point.b)}
    if len(seeds) == 1 and None not in seeds:
        yield _finding("cache-replayed", "warn", point, {"seed": next(iter(seeds))})
        return
    ratios: list[tuple[str, float]] = []
    for name in dict.fromkeys(("output_throughput", metric, "median_ttft_ms")):
        a, b = _mean(point.a, partial(_value, name)), _mean(point.b, partial(_value, name))
        if a and b:
            ratios.append((name, max(a / b, b / a)))
    limit = {"median_ttft_ms": 1 / TTFT_TOO_GOOD}
    large = next(((name, ratio) for name, ratio in ratios if ratio >= limit.get(name, TOO_GOOD)), None)
    if large is not None:
        yield _finding("cache-suspected", "warn", point, {"metric": large[0], "times": round(large[1], 2)})
    else:
        yield _finding("cache-unknown", "note", point, {})


def _failed_share(runs: tuple[Run, ...]) -> float | None:
    failed = completed = 0
    for run in runs:
        if run.failed is None or run.completed is None:
            return None
        failed += run.failed
        completed += run.completed
    return failed / (failed + completed) if failed + completed else None


def _unknown_arms(a: float | None, b: float | None) -> str:
    return "A and B" if a is None and b is None else "A" if a is None else "B"


def _achieved(run: Run) -> float | None:
    return _value("achieved_rate" if "achieved_rate" in run.metrics else "request_throughput", run)


def _value(name: str, run: Run) -> float | None:
    return run.metrics[name].value if name in run.metrics else None


def _mean(runs: tuple[Run, ...], of: Callable[[Run], float | None]) -> float | None:
    values = [of(run) for run in runs]
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _percent(share: float) -> str:
    return f"{share * 100:.1f}"


def _listed(counts: list[int]) -> str:
    return ", ".join(str(count) for count in counts[:4])
