"""`clawback evidence record` and `list`: keep what result files or a typed summary say of a knob's worth."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import JsonValue

from bot.cli.evidence_files import Arms, given, given_arm
from bot.cli.evidence_lines import judgement_lines, plain
from bot.cli.evidence_plot import plot_option
from bot.cli.evidence_show import draw_newest
from bot.cli.output import emit
from policies.errors import SettingsError
from policies.evidence import Draft, Record, remarks
from policies.fleet import Fleet, Knob
from policies.knobs import value_problem
from policies.recording import Given, Terms, already, from_results, from_summary, may_record

if TYPE_CHECKING:
    from bot.cli.talk import Terminal

UNSET = "unset"
PAIR = re.compile(r"[0-9]+/[0-9]+")
KEPT_ANYWAY = frozenset({"invalid", "regresses"})


@click.command(name="record", cls=Arms)
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--knob", required=True, help="The knob's name in the fleet file.")
@click.option("--a", "a", multiple=True, metavar="FILE...", help="Results with the baseline, in their order.")
@click.option("--b", "b", multiple=True, metavar="FILE...", help="Results with the value, in their order.")
@click.option("--value", default=None, help="The knob's value in B.")
@click.option("--baseline", default=None, help="Its value in A, or `unset`, which is the default.")
@click.option("--metric", default="output_throughput", show_default=True, help="A throughput or a latency.")
@click.option("--interleaved", is_flag=True, help="The runs took turns: the r-th of A and of B are a pair.")
@click.option("--today", type=click.IntRange(1), help="Today's concurrency: points up to it have to be no worse.")
@click.option("--scrapes", type=click.Path(path_type=Path), help="Counters before A, between and after B, in one file.")
@click.option("--correctness", metavar="FILE|0/200", help="A file, or how many of the compared answers differed.")
@click.option(
    "--context", "pairs", multiple=True, metavar="KEY=VALUE", help="What files do not tell: gpu=H200, gpus=8."
)
@click.option("--note", default="", help="A word for those who read it later.")
@click.option("--as", "pose", metavar="USER", help="Rehearse as somebody else; only on a sandbox.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: id.")
def record(
    file: Path | None,
    knob: str,
    a: tuple[str, ...],
    b: tuple[str, ...],
    value: str | None,
    baseline: str | None,
    metric: str,
    *,
    interleaved: bool,
    today: int | None,
    scrapes: Path | None,
    correctness: str | None,
    pairs: tuple[str, ...],
    note: str,
    pose: str | None,
    as_json: bool,
) -> None:
    """Keep evidence for a knob: a summary that a person typed into FILE, or result files of two arms.

    \b
    clawback evidence record ab.yaml --knob TARGET_CTAS
    clawback evidence record --knob TARGET_CTAS --value 512 --interleaved \\
        --a a*.jsonl --b b*.jsonl --correctness 0/200 --context gpu=H200 --context gpus=8

    \b
    A typed summary is of class `observed`:
    value: 512
    baseline: unset
    metric: output_throughput
    points: {C64: +12.8 %, C96: +5.7 %, C80: +1.2 %}
    correctness: {compared: 200, differing: 0}

    Result files are judged as by `evidence judge`; what the verdict is, the record is kept, bad news too. You need a
    role that the rules let ask for, or approve, a change of the knob. Exits 1 when these files are recorded already or
    you may not, 2 when something cannot be read.
    """
    from bot.cli.talk import open_terminal  # the store and its vendors are not loaded to show help

    if (file is None) == (not a and not b):
        raise click.UsageError("expected a typed summary FILE, or results with --a and --b")
    if file is None and (not a or not b or value is None):
        raise click.UsageError("results need --a, --b and --value")
    if file is not None and any((value, baseline, interleaved, today, scrapes, correctness, pairs, note)):
        raise click.UsageError("a typed summary says everything itself, expected only FILE and --knob")
    terminal = open_terminal(pose, as_json=as_json)
    fleet = terminal.wiring.fleet
    if knob not in fleet.knobs:
        raise SettingsError(f"there is no knob `{knob}` in the fleet file", hint=f"known: {', '.join(fleet.knobs)}")
    if file is not None:
        typed = given(file, "give the path of a typed summary")
        draft = from_summary(Given(file.name, typed.data if typed is not None else b""), knob)
    else:
        terms = Terms(
            knob=knob,
            value=_value(fleet.knobs[knob], value or ""),
            baseline=None if baseline in {None, UNSET} else _value(fleet.knobs[knob], baseline or ""),
            variable=fleet.knobs[knob].env,
            knobs=frozenset(other.env for other in fleet.knobs.values() if other.name != knob),
            metric=metric,
            interleaved=interleaved,
            today=today,
            scrapes=_named(scrapes),
            correctness=_correctness(correctness),
            context=dict(_pair(text) for text in pairs),
            note=note,
        )
        draft = from_results(_base_names(given_arm(a)), _base_names(given_arm(b)), terms)
    _store(terminal, fleet, draft, as_json=as_json)


def _store(terminal: Terminal, fleet: Fleet, draft: Draft, *, as_json: bool) -> None:
    """Say what was judged, and record it when this person may."""
    actor = terminal.person(deciding=False).actor
    may = may_record(fleet, fleet.knobs[draft.knob], actor)
    if may.effect == "refuse":
        terminal.refuse(may)
    client = terminal.wiring.client
    known = already(draft, client.evidence(draft.knob))
    if known is not None:
        emit({"id": known.id, "class": known.klass, "already": True}, as_json, [f"already recorded as {known.id}"])
        sys.exit(1)
    stored = client.record_evidence(draft, by=actor.id)
    lines = judgement_lines(stored.judgement) if stored.judgement is not None else []
    lines += [f"  note: {plain(finding)}" for finding in remarks(stored)]
    lines += [f"context: {'; '.join(_context(stored))}", f"recorded {line_of(stored, terminal.name_of(stored.by))}"]
    if stored.klass in KEPT_ANYWAY:
        lines.append(f"kept as {stored.klass}: bad news is evidence too, and lets nothing through")
    emit({"id": stored.id, "class": stored.klass}, as_json, lines)


@click.command(name="list")
@click.option("--knob", default=None, help="Only this knob.")
@plot_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document: records.")
def list_records(knob: str | None, plot: Path | None, *, as_json: bool) -> None:
    """List the records, oldest first: class, each load with its interval and n, who and when.

    With --plot the newest one that has runs is drawn.
    """
    from bot.cli.store import open_from_terminal  # as above
    from bot.terminal import names_of

    wiring = open_from_terminal()
    records = wiring.client.evidence(knob)
    name_of = names_of(wiring.fleet.people)
    lines = [line_of(r, name_of(r.by)) for r in records] or ["no evidence is recorded"]
    documents: list[JsonValue] = [{**r.model_dump(mode="json"), "class": r.klass} for r in records]
    emit({"records": documents}, as_json, lines)
    draw_newest(records, plot)


def line_of(found: Record, by: str) -> str:
    """One record in a line."""
    from bot.cards.evidence import points, runs  # as above

    against = "" if found.baseline is None else f" against {found.baseline}"
    return (
        f"{found.id}: {found.knob} = {found.value}{against}, {found.klass}, {points(found)} {found.metric}, "
        f"{runs(found)}, by {by}, {datetime.fromtimestamp(found.at, tz=UTC):%Y-%m-%d %H:%M} UTC, from {found.source}"
    )


def _context(found: Draft) -> Iterator[str]:
    """What is known of where it was measured; what nobody told is unknown."""
    known = found.context
    for name in ("accelerator", "accelerators", "model", "version", "commit"):
        told = getattr(known, name)
        yield f"{name} {told if told is not None else 'unknown'}"
    yield f"{len(known.flags)} flags" if known.flags else "flags unknown"


def _value(knob: Knob, text: str) -> str:
    problem = value_problem(knob, text)
    if problem is not None:
        raise SettingsError(plain(problem), hint="give the value as it stands in the environment")
    return text


def _pair(text: str) -> tuple[str, str]:
    name, sign, told = text.partition("=")
    if not sign or not name or not told:
        raise click.UsageError(f"--context `{text[:60]}`, expected KEY=VALUE such as gpu=H200")
    return name, told


def _correctness(text: str | None) -> Given | str | None:
    if text is None or PAIR.fullmatch(text):
        return text
    return _named(Path(text))


def _named(path: Path | None) -> Given | None:
    found = given(path)
    return None if found is None or path is None else Given(path.name, found.data)


def _base_names(files: list[Given]) -> list[Given]:
    """Files by their names: where they lie on this machine is nobody's business later."""
    return [Given(Path(one.name).name, one.data, one.arm) for one in files]
