"""Runs and judgements for a terminal: as the keys of the JSON document, and as short lines with units and n."""

from __future__ import annotations

import html

from pydantic import JsonValue

from bot.messages import sentence
from policies.abtest.judgement import Judgement, PointJudgement
from policies.bench.metrics import short
from policies.bench.run import Load, Run
from policies.finding import Finding

SHOWN = ("output_throughput", "request_throughput", "median_ttft_ms", "mean_tpot_ms", "median_tpot_ms", "p99_itl_ms",
         "time_s")  # fmt: skip
WORDS = {"refuse": "refused", "warn": "weak", "note": "note"}


def load_document(load: Load) -> dict[str, JsonValue]:
    """The keys of a load in every document."""
    return {
        "concurrency": load.concurrency,
        "request_rate": load.request_rate,
        "input_len": load.input_len,
        "output_len": load.output_len,
        "dataset": load.dataset,
    }


def run_document(run: Run) -> dict[str, JsonValue]:
    """One run of `evidence read`."""
    metrics: dict[str, JsonValue] = {name: {"value": q.value, "unit": q.unit} for name, q in run.metrics.items()}
    return {
        "format": run.format,
        "load": load_document(run.load),
        "metrics": metrics,
        "completed": run.completed,
        "failed": run.failed,
        "warnings": list(run.warnings),
    }


def run_lines(run: Run) -> list[str]:
    """What a person wants to see of a run."""
    load = run.load
    lengths = f" {load.input_len or '?'}/{load.output_len or '?'} tok" if load.input_len or load.output_len else ""
    about = [load.label]
    if load.dataset or lengths:
        about.append(f"{load.dataset or 'lengths'}{lengths}")
    arm = f", arm {run.arm}" if run.arm else ""
    shown = [f"{name} {run.metrics[name].value:.5g} {run.metrics[name].unit}" for name in SHOWN if name in run.metrics]
    failed = "failed unknown" if run.failed is None else f"{run.failed} failed"
    counts = f"{run.completed} completed, {failed}" if run.completed is not None else "requests unknown"
    took = f", {run.duration_s:.1f} s" if run.duration_s is not None else ""
    head = f"{run.file}:{run.line}: {', '.join(about)}{arm} ({run.format})"
    return [head, f"  {' · '.join(shown)}", f"  {counts}{took}", *(f"  note: {warning}" for warning in run.warnings)]


def judgement_document(found: Judgement) -> dict[str, JsonValue]:
    """`evidence judge`."""
    points: list[JsonValue] = [
        {
            "load": load_document(point.load),
            "n_a": point.n_a,
            "n_b": point.n_b,
            "ratio": point.ratio,
            "ci_low": point.ci_low,
            "ci_high": point.ci_high,
            "class": point.klass,
        }
        for point in found.points
    ]
    problems: list[JsonValue] = [{"code": f.code, "message": plain(f)} for f in found.problems]
    return {"verdict": found.verdict, "points": points, "problems": problems}


def judgement_lines(found: Judgement) -> list[str]:
    """The verdict, each load, and what was found, the worst first."""
    how = "interleaved" if found.interleaved else "not interleaved"
    lines = [f"verdict: {found.verdict} ({found.metric}, {found.better} is better, B against A, {how})"]
    lines += [_point(point, found) for point in found.points]
    return lines + [f"  {WORDS.get(f.effect, f.effect)}: {plain(f)}" for f in found.problems]


def _point(point: PointJudgement, found: Judgement) -> str:
    n = f"n={point.n_a} per arm" if point.n_a == point.n_b else f"n={point.n_a} in A and {point.n_b} in B"
    values = f"A {point.a:.5g}, B {point.b:.5g} {found.unit}"
    head = f"{point.load.label}: {percent(point.ratio)} % {short(found.metric)} ({values}), {n}"
    if point.ci_low is None or point.ci_high is None:
        return f"{head}, no interval: {point.klass}"
    interval = f"95 % [{percent(point.ci_low)}, {percent(point.ci_high)}] %"
    bound = f", one-sided bound {percent(point.bound)} %" if point.bound is not None else ""
    return f"{head}, {interval}{bound}: {point.klass}"


def percent(ratio: float) -> str:
    """The change of a ratio in percent: `+16.8`; two digits below a tenth."""
    change = (ratio - 1) * 100
    return f"{change:+.1f}" if abs(change) >= 0.1 or change == 0 else f"{change:+.2f}"


def plain(finding: Finding) -> str:
    """The sentence of a finding without the marks that a chat needs."""
    return html.unescape(sentence(finding)).replace("\u2060", "")
