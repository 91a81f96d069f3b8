"""`clawback audit verify` and `export`: is the ledger whole, and a copy of it as JSON lines."""

from __future__ import annotations

import sys

import click
from pydantic import JsonValue

from bot.cli.evidence_lines import plain
from bot.cli.output import emit
from bot.settings import read_settings


@click.group(name="audit")
def command() -> None:
    """Verify and export the ledger."""


@command.command(name="verify")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: ok, problems.")
def verify(*, as_json: bool) -> None:
    """Check every link, hash and list of the ledger.

    Exits 0 when it is whole, 1 when something was edited, deleted or moved, 2 when it cannot be read.
    """
    from workers import audit  # only this command pays for the client of Redis

    settings = read_settings()
    problems = audit.verify(settings.redis_url, settings.clawback_data)
    listed: list[JsonValue] = [{"code": one.code, "values": dict(one.values)} for one in problems]
    lines = [plain(one) for one in problems] or ["the ledger is whole"]
    emit({"ok": not problems, "problems": listed}, as_json, lines)
    sys.exit(1 if problems else 0)


@command.command(name="export")
def export() -> None:
    """Print every entry as one line of JSON, oldest first."""
    from workers import audit

    settings = read_settings()
    for line in audit.export(settings.redis_url, settings.clawback_data):
        click.echo(line)
