"""`clawback evidence show ID`: one record with all that is known of it, and its pictures as files."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
from pydantic import JsonValue

from bot.cli.evidence_plot import plot as draw_plot
from bot.cli.evidence_plot import plot_option
from bot.cli.output import emit
from bot.escape import visible
from policies.evidence import Record


@click.command(name="show")
@click.argument("record_id", metavar="ID")
@plot_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document: record.")
def show(record_id: str, plot: Path | None, *, as_json: bool) -> None:
    """Show the record ID, such as ab-17: verdict, each load with its interval and n, correctness, files, who and when.

    Exits 1 when there is no such record.
    """
    from bot.cards.evidences import exhibit  # the store and what draws cards are not loaded to read a file
    from bot.cli.store import open_from_terminal
    from bot.terminal import lines_of, names_of

    wiring = open_from_terminal()
    found = next((record for record in wiring.client.evidence() if record.id == record_id), None)
    if found is None:
        click.echo(f"there is no record `{record_id[:40]}`; `clawback evidence list` has all of them", err=True)
        sys.exit(1)
    document: dict[str, JsonValue] = {"record": {**found.model_dump(mode="json"), "class": found.klass}}
    lines = lines_of(exhibit(found, wiring.clock()), names_of(wiring.fleet.people))
    lines += [f"  {file.arm}: {visible(file.file)}, sha256 {file.sha256}" for file in found.files]
    emit(document, as_json, lines)
    draw(found, plot)


def draw_newest(records: Sequence[Record], plot: Path | None) -> None:
    """The pictures of the newest record that has runs.

    Raises: SettingsError.
    """
    found = next((record for record in reversed(records) if record.judgement is not None), None)
    if plot is not None and found is None:
        click.echo(f"not drawn: {plot}: no record has runs", err=True)
    elif plot is not None and found is not None:
        click.echo(f"the newest with runs is {found.id}", err=True)
        draw(found, plot)


def draw(found: Record, plot: Path | None) -> None:
    """The pictures of a record; one that a person typed has no runs to draw.

    Raises: SettingsError.
    """
    if plot is None:
        return
    if found.judgement is None:
        click.echo(f"not drawn: {plot}: {found.id} was typed by a person and has no runs", err=True)
        return
    against = "unset" if found.baseline is None else found.baseline
    draw_plot(found.judgement, plot, f"{found.knob} {found.value} against {against}")
