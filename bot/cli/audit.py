"""`clawback audit verify` and `export`: is the ledger whole, do its copies agree, and a copy of it as JSON lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from pydantic import JsonValue

from bot.cli.evidence_lines import plain
from bot.cli.output import emit
from bot.settings import Settings, read_settings
from policies.finding import Finding

if TYPE_CHECKING:
    from workers.audit import Copies


@click.group(name="audit")
def command() -> None:
    """Verify and export the ledger."""


@command.command(name="verify")
@click.option("--thread", is_flag=True, help="Also compare every thread in Slack with the ledger.")
@click.option("--change", "changes", multiple=True, metavar="CHANGE", help="Only this thread; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: ok, problems; with --thread also notes.")
def verify(changes: tuple[str, ...], *, thread: bool, as_json: bool) -> None:
    """Check every link, hash and list of the ledger.

    With --thread every line in Slack is drawn again and compared with what stands there; this needs
    SLACK_BOT_TOKEN and CLAWBACK_FLEET. A line that is still to be drawn is told and is no problem.
    Exits 0 when all is whole, 1 when something was edited, deleted, added or moved, 2 when it cannot be read.
    """
    from workers import audit  # only this command pays for the client of Redis

    settings = read_settings()
    if changes and not thread:
        raise click.UsageError("--change chooses threads: give --thread too")
    with audit.copies(settings.redis_url, settings.clawback_data) as copies:
        problems = copies.verify()
        lines = [plain(one) for one in problems] or ["the ledger is whole"]
        document: dict[str, JsonValue] = {}
        if thread:
            found, notes, told = _threads(settings, copies, changes)
            problems += found
            lines += told
            document["notes"] = _listed(notes)
    emit({"ok": not problems, "problems": _listed(problems), **document}, as_json, lines)
    sys.exit(1 if problems else 0)


def _threads(
    settings: Settings, copies: Copies, changes: tuple[str, ...]
) -> tuple[list[Finding], list[Finding], list[str]]:
    """Problems, notes, and both as lines."""
    from bot.audit.reading import Slack
    from bot.audit.threads import Threads
    from bot.slack import make_client
    from workers.wiring import load_fleet

    client = make_client(settings.secret("SLACK_BOT_TOKEN"), settings.api_url)
    compared = Threads(copies, Slack(client), load_fleet(settings.fleet_file())).compare(changes)
    lines = [plain(one) for one in (*compared.problems, *compared.notes)]
    if not compared.problems:
        looked = f"{compared.messages} messages, {compared.threads} threads"
        lines.append(f"the threads agree with the ledger ({looked})")
    return list(compared.problems), list(compared.notes), lines


def _listed(findings: list[Finding]) -> list[JsonValue]:
    return [{"code": one.code, "values": dict(one.values)} for one in findings]


@command.command(name="export")
def export() -> None:
    """Print every entry as one line of JSON, oldest first."""
    from workers import audit

    settings = read_settings()
    for line in audit.export(settings.redis_url, settings.clawback_data):
        click.echo(line)
