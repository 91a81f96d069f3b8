"""`clawback explain "TEXT"`: how a chat command is read, without doing anything."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from pydantic import JsonValue

from bot.cli.output import emit
from bot.grammar import Names, Reading, parse
from policies.errors import FleetFileError


@click.command(name="explain")
@click.argument("text")
@click.option("--fleet", type=click.Path(path_type=Path), help="Check names against this fleet file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(text: str, fleet: Path | None, as_json: bool) -> None:
    """Show how the chat command TEXT is read. Exit code 1: it is not a command."""
    reading = parse(text, names=None if fleet is None else _names(fleet))
    emit(_document(reading), as_json, _lines(reading))
    sys.exit(0 if reading.error is None else 1)


def _names(file: Path) -> Names:
    from bot.cli.fleet import read_bytes
    from policies.fleet_checks.nodes import max_bytes

    try:
        with file.open("rb") as source:
            data = source.read(max_bytes + 1)
    except OSError as error:
        raise FleetFileError(
            f'the fleet file "{file}" cannot be read ({(error.strerror or type(error).__name__).lower()})',
            hint="check the path and its permissions",
        ) from error
    reading = read_bytes(data, str(file))
    if reading.fleet is None:
        first = reading.errors[0]
        raise FleetFileError(
            f"{first.file}:{first.line}: {first.message}", hint=f"clawback fleet check {file} shows every error"
        )
    return Names.of(reading.fleet)


def _document(reading: Reading) -> dict[str, JsonValue]:
    if reading.error is not None:
        error = reading.error
        return {"error": {"code": error.code, "message": error.message, "hint": error.hint}}
    intent = None if reading.command is None else reading.command.model_dump(mode="json")
    return {"intent": intent, "normalised": reading.normalised}


def _lines(reading: Reading) -> list[str]:
    if reading.error is not None:
        return [f"not a command ({reading.error.code}): {reading.error.message}", f"  {reading.error.hint}"]
    lines = [f"read as: {reading.normalised}"]
    if reading.command is not None:
        fields = reading.command.model_dump(mode="json", exclude_defaults=True)
        lines += [
            f"  kind: {reading.command.kind}",
            *(f"  {name}: {_text(value)}" for name, value in fields.items() if name != "kind"),
        ]
    return lines


def _text(value: JsonValue) -> str:
    return ", ".join(str(one) for one in value) if isinstance(value, list) else str(value)
