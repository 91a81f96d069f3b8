"""`clawback doctor`: everything that has to be right before a change can go through, each with what to do."""

from __future__ import annotations

import logging
import sys

import click
from pydantic import JsonValue, ValidationError

from bot.cli.output import emit
from bot.doctor import CHECKS
from bot.doctor.check import Check, Patient
from bot.settings import Settings, read_settings
from policies.errors import SettingsError


@click.command(name="doctor")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: checks.")
def command(*, as_json: bool) -> None:
    """Check packages, settings, Slack, the store, and every host; change nothing.

    What cannot be looked at because something else is wrong is told as not checked. No secret is printed.
    Exits 0 when everything is well, 1 when something is not.
    """
    logging.getLogger("slack_sdk").addHandler(logging.NullHandler())  # what it would log is told as a check
    patient = admitted()
    found: list[Check] = []
    for look in CHECKS:
        for check in look(patient):
            found.append(check)
            if not as_json:
                click.echo(_line(check))
    bad = [check for check in found if not check.ok]
    listed: list[JsonValue] = [check.model_dump() for check in found]
    emit({"ok": not bad, "checks": listed}, as_json, [f"{len(found)} checks, {len(bad)} not well"])
    sys.exit(1 if bad else 0)


def admitted() -> Patient:
    """This installation; a variable that cannot be read has its default for the rest of the checks."""
    try:
        return Patient(read_settings())
    except SettingsError as error:
        unread = error.__cause__.errors() if isinstance(error.__cause__, ValidationError) else []
        fields = Settings.model_fields
        names = [str(one["loc"][0]) for one in unread]
        return Patient(Settings(**{n: fields[n].get_default(call_default_factory=True) for n in names}), error)


def _line(check: Check) -> str:
    said = f"{'ok ' if check.ok else 'NOT'}  {check.name}: {check.detail}"
    return said if check.ok else f"{said}\n       fix: {check.fix}"
