"""`clawback fleet`: `check FILE` tells every error of a fleet file at once, `drift` what is not as it was left."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from bot.cli.drift import drift
from policies.errors import FleetFileError
from policies.fleet import Fleet
from policies.fleet_checks.nodes import max_bytes
from policies.fleet_file import FleetError, FleetReading, read_fleet


@click.group(name="fleet")
def command() -> None:
    """Check the fleet file, and the fleet itself."""


command.add_command(drift)


@command.command(name="check")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON document: ok, errors.")
def check(file: Path, *, as_json: bool) -> None:
    """Read FILE and print every error with its line and what to write.

    Exits 0 when the file is good, 1 when it holds errors, 2 when it cannot be read at all.
    """
    try:
        with file.open("rb") as source:
            data = source.read(max_bytes + 1)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        unreadable = FleetError(
            file=str(file),
            line=0,
            code="file.unreadable",
            message=f"the file cannot be read ({reason}), expected a fleet file",
            hint="check the path and its permissions",
        )
        show(FleetReading(fleet=None, errors=(unreadable,)), as_json=as_json)
        sys.exit(2)
    reading = read_bytes(data, str(file))
    show(reading, as_json=as_json)
    sys.exit(0 if reading.fleet is not None else 1)


def read_file(file: Path) -> Fleet:
    """The fleet of a file.

    Raises: FleetFileError with every error of the file.
    """
    try:
        with file.open("rb") as source:
            reading = read_bytes(source.read(max_bytes + 1), str(file))
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise FleetFileError(
            f"`{file}` cannot be read ({reason})", hint="check the path and its permissions"
        ) from error
    if reading.fleet is None:
        lines = "\n".join(f"{err.file}:{err.line}: {err.message}" for err in reading.errors)
        raise FleetFileError(lines, hint=f"run `clawback fleet check {file}`")
    return reading.fleet


def read_bytes(data: bytes, file: str) -> FleetReading:
    """Read a fleet from bytes; text that is not utf-8 is an error with its line."""
    if len(data) > max_bytes:
        return read_fleet(" " * len(data), file)  # reported as too large, whatever the cut did to its end
    try:
        return read_fleet(data.decode("utf-8"), file)
    except UnicodeDecodeError as error:
        wrong = FleetError(
            file=file,
            line=data.count(b"\n", 0, error.start) + 1,
            code="file.not_utf8",
            message=f"the byte 0x{data[error.start]:02x} is not utf-8, expected utf-8 text",
            hint="save the file as utf-8",
        )
        return FleetReading(fleet=None, errors=(wrong,))


def show(reading: FleetReading, *, as_json: bool) -> None:
    """Print a reading."""
    if as_json:
        errors = [error.model_dump() for error in reading.errors]
        click.echo(json.dumps({"ok": reading.fleet is not None, "errors": errors}, indent=2))
        return
    for error in reading.errors:
        where = f"{error.file}:{error.line}" if error.line else error.file
        click.echo(f"{where}: {error.message}")
        click.echo(f"    hint: {error.hint}")
    if reading.fleet is not None:
        click.echo(summary(reading.fleet))
    else:
        click.echo(f"{count(len(reading.errors), 'error')}")


def summary(fleet: Fleet) -> str:
    """One line about a good fleet."""
    parts = (
        count(len(fleet.hosts), "host"),
        count(len(fleet.services), "service"),
        count(len(fleet.knobs), "knob"),
        count(len(fleet.rules), "rule"),
    )
    return f"ok: fleet {fleet.name}, {', '.join(parts)}, sha256 {fleet.sha256[:12]}"


def count(number: int, noun: str) -> str:
    """`1 error`, `2 errors`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
