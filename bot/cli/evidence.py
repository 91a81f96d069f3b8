"""`clawback evidence record FILE --knob K` and `list`: what is known of a knob's worth."""

from __future__ import annotations

import hashlib
from pathlib import Path

import click

from bot.cards.evidence import points, runs
from bot.cli.output import emit
from bot.cli.store import open_from_terminal
from bot.person import os_user
from policies.errors import SettingsError
from policies.evidence import Record
from policies.summary_file import MAX_BYTES, read_summary


@click.group(name="evidence")
def command() -> None:
    """Record and list evidence for knobs."""


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
    """
    try:
        with file.open("rb") as source:
            data = source.read(MAX_BYTES + 1)
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"`{file}` cannot be read: {error}", hint="give a utf-8 file") from error
    summary = read_summary(text, str(file), knob)
    wiring = open_from_terminal()
    if knob not in wiring.fleet.knobs:
        known = ", ".join(wiring.fleet.knobs)
        raise SettingsError(f"there is no knob `{knob}` in the fleet file", hint=f"known: {known}")
    stored = wiring.client.record_evidence(
        summary, by=os_user(), source=file.name, sha256=hashlib.sha256(data).hexdigest()
    )
    emit({"id": stored.id, "class": stored.klass}, as_json, [f"recorded {_line(stored)}"])


@command.command(name="list")
@click.option("--knob", default=None, help="Only this knob.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: records.")
def list_records(knob: str | None, *, as_json: bool) -> None:
    """List the records, oldest first."""
    records = open_from_terminal().client.evidence(knob)
    lines = [_line(r) for r in records] or ["no evidence is recorded"]
    emit({"records": [r.model_dump(mode="json") for r in records]}, as_json, lines)


def _line(found: Record) -> str:
    summary = found.summary
    return (
        f"{found.id}: {found.knob} = {summary.value}, {found.klass}, {points(summary)} {summary.metric}, "
        f"{runs(summary)}, by {found.by}, from {found.source}"
    )
