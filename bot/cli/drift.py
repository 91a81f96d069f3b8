"""`clawback fleet drift`: what is not as it was left, on every instance."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
from pydantic import JsonValue

from bot.cli.output import emit

if TYPE_CHECKING:
    from policies.errors import OpsError
    from policies.finding import Finding
    from workers.drift import FleetLook, InstanceLook
    from workers.look import InstanceValue


@click.command(name="drift")
@click.option("--json", "as_json", is_flag=True, help="One JSON document: ok, instances, errors.")
def drift(*, as_json: bool) -> None:
    """Compare desired, configured and live values of every knob, and versions, on every instance.

    Desired is what the last succeeded change brought, configured what the unit would start with, live what its main
    process has. Nothing is changed. Exits 0 when nothing differs, 1 when something does or a host cannot be asked.
    """
    from bot.cli.store import open_from_terminal
    from workers.drift import fleet_drift

    wiring = open_from_terminal()
    try:
        look = fleet_drift(wiring)
    finally:
        wiring.close()
    ok = not look.drifted and not look.unread
    errors: list[JsonValue] = [_error(host, error) for host, error in look.unread.items()]
    instances: list[JsonValue] = [_document(one) for one in look.instances]
    emit({"ok": ok, "instances": instances, "errors": errors}, as_json, _lines(look))
    sys.exit(0 if ok else 1)


def _lines(look: FleetLook) -> list[str]:
    found = [("drift" if one.effect == "refuse" else "note ", _said(one)) for i in look.instances for one in i.findings]
    lines = [f"{word}  {said}" for word, said in sorted(found)]
    lines += [f"NOT ASKED  {host}: {error.message}" for host, error in look.unread.items()]
    knobs = sum(len(one.values) for one in look.instances)
    drifted = sum(word == "drift" for word, _ in found)
    return [*lines, f"{len(look.instances)} instances, {knobs} values of knobs, {drifted} differ"]


def _document(look: InstanceLook) -> JsonValue:
    return {
        "instance": look.instance,
        "active_state": look.active_state,
        "build": look.build,
        "version": _version(look),
        "incarnation": look.incarnation.model_dump(mode="json"),
        "left": look.left.model_dump(mode="json") if look.left is not None else None,
        "knobs": [_value(name, value) for name, value in look.values.items()],
        "drift": [_finding(one) for one in look.findings if one.effect == "refuse"],
        "notes": [_finding(one) for one in look.findings if one.effect != "refuse"],
    }


def _version(look: InstanceLook) -> JsonValue:
    seen = look.version
    return None if seen is None else {"desired": seen.desired, "configured": seen.configured, "live": seen.live}


def _value(knob: str, value: InstanceValue) -> JsonValue:
    return {
        "knob": knob,
        "managed": value.managed,
        "desired": value.desired,
        "configured": value.configured,
        "configured_by": value.configured_by,
        "live": value.live,
        "live_answer": value.live_answer,
        "drift": value.drift,
    }


def _finding(one: Finding) -> JsonValue:
    return {"code": one.code, "message": _said(one)}


def _error(host: str, error: OpsError) -> JsonValue:
    return {"file": "", "line": 0, "code": "host.not-asked", "message": f"{host}: {error.message}", "hint": error.hint}


def _said(one: Finding) -> str:
    from bot.messages import sentence
    from bot.terminal import plain

    return plain(sentence(one), lambda user: user)
