"""Knobs of a fleet file: each has a limit that fits its type."""

from __future__ import annotations

from typing import Literal

import yaml

from policies.fleet import Knob, Reported
from policies.fleet_checks.problems import listed
from policies.fleet_checks.regex import regex
from policies.fleet_checks.table import Table
from policies.fleet_checks.values import Form, number

Kind = Literal["int", "float", "str", "bool", "enum"]
kinds: tuple[Kind, ...] = ("int", "float", "str", "bool", "enum")
knob_keys = ("env", "on", "type", "range", "values", "pattern", "restarts", "about", "if_guilty", "reported")
limit_of: dict[Kind, str] = {"int": "range", "float": "range", "enum": "values", "str": "pattern", "bool": ""}
limit_examples = {"range": "range: [1, 4096]", "values": "values: [low, high]", "pattern": 'pattern: "[a-z0-9]+"'}
env_form = Form(
    r"[A-Za-z_][A-Za-z0-9_]{0,254}",
    "knob.env",
    "the name of an environment variable: letters, digits and '_', not beginning with a digit",
    "write e.g. SGLANG_SM120_MMA_TARGET_CTAS",
)
reported_form = Form(
    r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*",
    "knob.reported",
    "a dotted path in the JSON of server_info",
    'write e.g. reported: "internal_states.0.target_ctas"',
)
value_form = Form(r"[^\s]+( [^\s]+)*", "knob.value", "a value without blanks at its ends", "write e.g. [low, high]")


def read_knobs(top: Table) -> dict[str, Knob]:
    """`knobs:`."""
    knobs = {}
    for entry in top.named("knobs", "knob"):
        table = entry.table(top.reader, knob_keys)
        table.need("env", f"env: {entry.name.upper()[:60]}")
        table.need("on", "on: [SERVICE]")
        table.need("restarts", "restarts: [ORDER]")
        kind: Kind | None = None
        if table.need("type", "type: int (or float, str, bool, enum)"):
            before = len(table.reader.problems.errors)
            kind = table.word("type", kinds, "knob.type")
            if len(table.reader.problems.errors) == before and kind is not None:
                _check_limits(table, kind)
        reported = table.matching("reported", reported_form)
        envs = _envs(table)
        knobs[entry.name] = Knob(
            name=entry.name,
            env=next(iter(envs.values()), "") if envs is not None else table.matching("env", env_form) or "",
            envs=envs or {},
            on=table.names("on"),
            type=kind or "int",
            range=_range(table, kind),
            values=_values(table),
            pattern=regex(table, "pattern", "knob.pattern", '"[a-z0-9_]+"'),
            restarts=table.names("restarts"),
            about=table.text("about") or "",
            if_guilty=table.text("if_guilty"),
            reported=Reported(path=reported) if reported else None,
        )
    return knobs


def _envs(table: Table) -> dict[str, str] | None:
    """`env: {prefill: A, decode: B}`, what each service calls it; None where all call it the same."""
    if not isinstance(table.nodes.get("env"), yaml.MappingNode):
        return None
    found = {e.name: table.reader.matching(e.path, e.node, env_form) or "" for e in table.named("env", "service")}
    on = table.names("on")
    if on and set(found) != set(on):
        table.reader.problems.add(
            table.at("env"),
            "knob.env_services",
            f"env names {listed(found)} and the knob is on {listed(on)}, expected a variable for each of these",
            "write one variable for all, or one for each service of `on`",
        )
    return found


def _check_limits(table: Table, kind: Kind) -> None:
    wanted = limit_of[kind]
    if wanted and wanted not in table:
        table.reader.problems.add(
            table.path,
            f"knob.no_{wanted}",
            f"a knob of type {kind} has no {wanted}, expected one: any value at all would be accepted",
            f"add {limit_examples[wanted]}",
        )
    for key in limit_examples:
        if key in table and key != wanted:
            expected = f"only {wanted}" if wanted else "none of range, values, pattern"
            table.reader.problems.add(
                table.at(key),
                "knob.wrong_limit",
                f"{key} says nothing about a knob of type {kind}, expected {expected}",
                "remove it, or change the type",
            )


def _range(table: Table, kind: Kind | None) -> tuple[float, float] | None:
    node = table.nodes.get("range")
    if node is None:
        return None
    path, problems = table.at("range"), table.reader.problems
    hint = f"write {limit_examples['range']}"
    ends = [number(item) for item in node.value] if isinstance(node, yaml.SequenceNode) else []
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        found = "another list" if isinstance(node, yaml.SequenceNode) else "no list"
        message = f"expected two numbers [lowest, highest], found {found}"
        problems.add(path, "knob.range", message, hint)
        return None
    low, high = ends[0], ends[1]
    if kind == "int" and not (isinstance(low, int) and isinstance(high, int)):
        problems.add(path, "knob.range", f"[{low}, {high}] is not whole, expected whole numbers for an int", hint)
        return None
    if low > high:
        problems.add(
            path,
            "knob.range_inverted",
            f"[{low}, {high}] is upside down, expected the lowest value first",
            f"write range: [{high}, {low}]",
        )
        return None
    return (float(low), float(high))


def _values(table: Table) -> tuple[str, ...]:
    # `values: [on, off, 1]` means the texts as typed: they will stand in the environment
    return table.texts("values", value_form)
