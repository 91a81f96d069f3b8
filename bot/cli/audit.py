"""`clawback audit verify`, `rebuild` and `export`: is the ledger whole, do its copies agree, and what to do if not."""

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
    """Verify, rebuild and export the ledger."""


@command.command(name="verify")
@click.option("--thread", is_flag=True, help="Also compare every thread in Slack with the ledger.")
@click.option("--change", "changes", multiple=True, metavar="CHANGE", help="Only this thread; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: ok, problems; where there are any, notes.")
def verify(changes: tuple[str, ...], *, thread: bool, as_json: bool) -> None:
    """Check every link, hash and list of the ledger, and the archive where there is one.

    With --thread every line in Slack is drawn again and compared with what stands there; this needs
    SLACK_BOT_TOKEN and CLAWBACK_FLEET. A line that is still to be drawn is told and is no problem.
    Exits 0 when all is whole, 1 when something was edited, deleted, added or moved, 2 when it cannot be read.
    """
    from workers import audit  # only this command pays for the client of Redis

    settings = read_settings()
    if changes and not thread:
        raise click.UsageError("--change chooses threads: give --thread too")
    notes: list[Finding] = []
    with audit.copies(settings.redis_url, settings.clawback_data) as copies:
        problems = copies.verify()
        lines = [plain(one) for one in problems] or ["the ledger is whole"]
        archived = copies.archived(settings.archive_folder)
        problems += [one for one in archived if one.effect == "refuse"]
        notes += [one for one in archived if one.effect != "refuse"]
        lines += [plain(one) for one in archived]
        if thread:
            found, more, told = _threads(settings, copies, changes)
            problems += found
            notes += more
            lines += told
    document: dict[str, JsonValue] = {"ok": not problems, "problems": _listed(problems)}
    if notes or thread:
        document["notes"] = _listed(notes)
    emit(document, as_json, lines)
    sys.exit(1 if problems else 0)


@command.command(name="rebuild")
@click.option("--from-archive", is_flag=True, help="Take entries that the ledger lacks or that are damaged from there.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: ok, problems, done.")
def rebuild(*, from_archive: bool, as_json: bool) -> None:
    """Make lists, indexes and sets anew from the ledger; when it is empty, the ledger from the archive first.

    Nothing is written over that is longer, whole and different. End clawback first.
    Exits 0 when it was done, 1 when it was not, with the reason.
    """
    from workers import audit

    settings = read_settings()
    with audit.copies(settings.redis_url, settings.clawback_data, new=True) as copies:
        found = copies.rebuild(settings.archive_folder, from_archive=from_archive)
    problems = [one for one in found if one.effect == "refuse"]
    done = [one for one in found if one.effect != "refuse"]
    document: dict[str, JsonValue] = {"ok": not problems, "problems": _listed(problems), "done": _listed(done)}
    emit(document, as_json, [plain(one) for one in found])
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
    return [{"code": one.code, "message": plain(one), "values": dict(one.values)} for one in findings]


@command.command(name="export")
def export() -> None:
    """Print every entry as one line of JSON, oldest first."""
    from workers import audit

    settings = read_settings()
    for line in audit.export(settings.redis_url, settings.clawback_data):
        click.echo(line)
