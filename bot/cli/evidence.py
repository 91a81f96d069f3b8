"""`clawback evidence`: read benchmark results, judge an A/B, record and list what is known of a knob's worth."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from pydantic import JsonValue

from bot.cli.evidence_lines import judgement_document, judgement_lines, run_document, run_lines
from bot.cli.evidence_plot import plot as draw_plot
from bot.cli.evidence_plot import plot_option
from bot.cli.output import emit
from policies.abtest.judge import Question
from policies.abtest.judge import judge as judge_runs
from policies.abtest.prefix_cache import CacheUse, read_cache_use
from policies.bench import reading
from policies.bench.run import Problem, Reading, Run
from policies.errors import SettingsError
from policies.evidence import Record
from policies.summary_file import MAX_BYTES, read_summary

ARMS = ("--a", "--b")


@click.group(name="evidence")
def command() -> None:
    """Read benchmark results, judge an A/B, record and list evidence for knobs."""


@command.command(name="read")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON document: runs.")
def read(files: tuple[Path, ...], *, as_json: bool) -> None:
    """Read result FILES of any known format to runs, with units.

    Text for people beside them is skipped with a warning. Exits 0 when all was read, 1 when a place of a file was not
    or there is no result at all, 2 when a file cannot be read or is no result.
    """
    read_files = [_reading(path) for path in files]
    runs = [run for one in read_files for run in one.runs]
    problems = [problem for one in read_files for problem in one.problems]
    document: dict[str, JsonValue] = {"runs": [run_document(run) for run in runs]}
    if problems:
        document["problems"] = [_problem(problem) for problem in problems]
    emit(document, as_json, [line for run in runs for line in run_lines(run)])
    for one in read_files:
        if one.skipped:
            click.echo(f"skipped: {one.file}: {one.skipped}", err=True)
    for problem in problems:
        click.echo(str(problem), err=True)
    if any(one.problems and not one.runs for one in read_files):
        sys.exit(2)
    if not runs:
        click.echo("no result among the files", err=True)
    sys.exit(1 if problems or not runs else 0)


class Arms(click.Command):
    """A command whose `--a` and `--b` take all files up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`--a x y` is `--a x --a y`."""
        spread: list[str] = []
        arm: str | None = None
        empty: str | None = None
        for word in args:
            if word in ARMS:
                arm = empty = word
            elif word.startswith("-") or arm is None:
                arm = None
                spread.append(word)
            else:
                spread += [arm, word]
                empty = None
        if empty is not None:
            raise click.UsageError(f"{empty} has no file, expected one or more", ctx)
        return super().parse_args(ctx, spread)


@command.command(name="judge", cls=Arms)
@click.option("--a", "a", multiple=True, required=True, metavar="FILE...", help="Results of A, in their order.")
@click.option("--b", "b", multiple=True, required=True, metavar="FILE...", help="Results of B, in their order.")
@click.option("--metric", default="output_throughput", show_default=True, help="A throughput or a latency.")
@click.option("--load", default=None, help="Only this load, e.g. C64 or '4 req/s'.")
@click.option("--interleaved", is_flag=True, help="The runs took turns: the r-th of A and of B are a pair.")
@click.option("--today", type=click.IntRange(1), help="Today's concurrency: points up to it have to be no worse.")
@click.option("--scrapes", type=click.Path(path_type=Path), help="Counters before A, between and after B, in one file.")
@plot_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document: verdict, points, problems.")
def judge(
    a: tuple[str, ...],
    b: tuple[str, ...],
    metric: str,
    load: str | None,
    *,
    interleaved: bool,
    today: int | None,
    scrapes: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Judge whether B is better than A, or no worse.

    FILE may be FILE#ARM where a file names its arms. Exits 0 for improves and no_worse, 1 for every other verdict.
    """
    runs_a, wrong_a = _arm(a)
    runs_b, wrong_b = _arm(b)
    if load is not None:
        runs_a, runs_b = _at(load, runs_a, runs_b)
    question = Question(metric=metric, interleaved=interleaved, today=today, cache=_cache(scrapes))
    found = judge_runs(runs_a, runs_b, question, unread=[*wrong_a, *wrong_b])
    emit(judgement_document(found), as_json, judgement_lines(found))
    draw_plot(found, plot)
    sys.exit(0 if found.good else 1)


def _reading(path: Path) -> Reading:
    try:
        with path.open("rb") as source:
            data = source.read(reading.MAX_BYTES + 1)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        problem = Problem(file=str(path), line=1, message=f"the file cannot be read ({why})")
        return Reading(file=str(path), sha256="", problems=(problem,))
    return reading.read_runs(data, str(path))


def _arm(files: Sequence[str]) -> tuple[list[Run], list[Problem]]:
    """The runs of an arm's files, in order.

    Raises: SettingsError for a file that gives no run.
    """
    runs: list[Run] = []
    problems: list[Problem] = []
    for name in files:
        path, _, arm = (name, "", "") if Path(name).exists() else name.partition("#")
        one = _reading(Path(path))
        if one.problems and not one.runs:
            raise SettingsError(str(one.problems[0]), hint="`clawback evidence read` tells what a file holds")
        if one.skipped:
            raise SettingsError(f"{one.file}: {one.skipped}", hint="give result files for --a and --b")
        kept = [run for run in one.runs if not arm or run.arm == arm]
        if not kept:
            named = sorted({run.arm for run in one.runs if run.arm is not None})
            raise SettingsError(f"{path}: no arm `{arm}`", hint=f"arms of the file: {', '.join(named) or 'none'}")
        runs += kept
        problems += one.problems
    return runs, problems


def _at(load: str, a: list[Run], b: list[Run]) -> tuple[list[Run], list[Run]]:
    """The runs at one load, as it is named.

    Raises: click.UsageError when neither arm has it.
    """
    wanted = load.strip().lower()
    names = {wanted, f"c{wanted}", f"{wanted} req/s"}
    kept = [[run for run in runs if run.load.label.lower() in names] for runs in (a, b)]
    if not any(kept):
        known = ", ".join(dict.fromkeys(run.load.label for run in (*a, *b)))
        raise click.UsageError(f"no run at load '{load[:60]}', expected one of: {known}")
    return kept[0], kept[1]


def _cache(scrapes: Path | None) -> CacheUse | None:
    if scrapes is None:
        return None
    try:
        with scrapes.open("rb") as source:
            text = source.read(reading.MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise SettingsError(f"`{scrapes}` cannot be read: {error}", hint="give a text of metrics") from error
    return read_cache_use(text, str(scrapes))


def _problem(problem: Problem) -> JsonValue:
    return {"file": problem.file, "line": problem.line, "message": problem.message}


@command.command(name="record")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--knob", required=True, help="The knob's name in the fleet file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: id.")
def record(file: Path, knob: str, *, as_json: bool) -> None:
    """Store the summary that a person typed into FILE, as class `observed`.

    \b
    value: 512
    baseline: unset
    metric: output_throughput
    points: {C64: +12.8 %, C96: +5.7 %, C80: +1.2 %}
    correctness: {compared: 200, differing: 0}

    Exits 1 when this very file is recorded for the knob already, 2 when it cannot be read.
    """
    from bot.cli.store import open_from_terminal  # the store and its vendors are not loaded to read a file
    from bot.person import os_user

    try:
        with file.open("rb") as source:
            data = source.read(MAX_BYTES + 1)
        text = data.decode("utf-8")
    except OSError as error:
        why = (error.strerror or type(error).__name__).lower()
        raise SettingsError(f"`{file}` cannot be read ({why})", hint="give the path of a typed summary") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"`{file}` is not utf-8", hint="save it as utf-8") from error
    summary = read_summary(text, str(file), knob)
    wiring = open_from_terminal()
    if knob not in wiring.fleet.knobs:
        known = ", ".join(wiring.fleet.knobs)
        raise SettingsError(f"there is no knob `{knob}` in the fleet file", hint=f"known: {known}")
    sha256 = hashlib.sha256(data).hexdigest()
    already = next((one.id for one in wiring.client.evidence(knob) if one.sha256 == sha256), None)
    if already is not None:
        emit({"id": already, "already": True}, as_json, [f"already recorded as {already}"])
        sys.exit(1)
    stored = wiring.client.record_evidence(summary, by=os_user(), source=file.name, sha256=sha256)
    emit({"id": stored.id, "class": stored.klass}, as_json, [f"recorded {_line(stored)}"])


@command.command(name="list")
@click.option("--knob", default=None, help="Only this knob.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: records.")
def list_records(knob: str | None, *, as_json: bool) -> None:
    """List the records, oldest first."""
    from bot.cli.store import open_from_terminal  # as above

    records = open_from_terminal().client.evidence(knob)
    lines = [_line(r) for r in records] or ["no evidence is recorded"]
    emit({"records": [r.model_dump(mode="json") for r in records]}, as_json, lines)


def _line(found: Record) -> str:
    from bot.cards.evidence import points, runs  # as above

    summary = found.summary
    return (
        f"{found.id}: {found.knob} = {summary.value}, {found.klass}, {points(summary)} {summary.metric}, "
        f"{runs(summary)}, by {found.by}, from {found.source}"
    )
