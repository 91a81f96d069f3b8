"""`clawback evidence`: read benchmark results and judge an A/B. Keeping records is `bot.cli.evidence_record`."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from pydantic import JsonValue

from bot.cli.evidence_files import Arms, given, given_arm, reading_of
from bot.cli.evidence_lines import judgement_document, judgement_lines, run_document, run_lines
from bot.cli.evidence_plot import plot as draw_plot
from bot.cli.evidence_plot import plot_option
from bot.cli.evidence_record import list_records, record
from bot.cli.evidence_show import show
from bot.cli.output import emit
from policies.abtest.judge import Question
from policies.abtest.judge import judge as judge_runs
from policies.bench.run import Problem, Run
from policies.recording import cache_of, runs_of


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
    read_files = [reading_of(path) for path in files]
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
    runs_a, wrong_a = runs_of(given_arm(a))
    runs_b, wrong_b = runs_of(given_arm(b))
    if load is not None:
        runs_a, runs_b = _at(load, runs_a, runs_b)
    question = Question(metric=metric, interleaved=interleaved, today=today, cache=cache_of(given(scrapes)))
    found = judge_runs(runs_a, runs_b, question, unread=[*wrong_a, *wrong_b])
    emit(judgement_document(found), as_json, judgement_lines(found))
    draw_plot(found, plot)
    sys.exit(0 if found.good else 1)


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


def _problem(problem: Problem) -> JsonValue:
    return {"file": problem.file, "line": problem.line, "message": problem.message}


command.add_command(record)
command.add_command(list_records)
command.add_command(show)
