"""Does the running build read a knob's variable at all? Setting one that it does not know changes nothing.

An engine names a variable that it does not know in its log, or reports variables without it, or reports its own default
although the environment says otherwise. That a value was refused shows the contrary: the variable was read.
Source: vLLM's `Unknown vLLM environment variable detected`, sglang's `Invalid value for NAME` and `env_vars`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from policies.facts import UnitFacts
from policies.fleet import Knob
from policies.gates.port import taken
from policies.gates.reported import reported_value
from policies.knobs import value_problem
from policies.wrapper import wrapped

ENV_VARS = "env_vars"  # the variables that are set, as sglang reports them; one that is unset is not among them
MOST_TEXT = 160


@dataclass(frozen=True, slots=True)
class Reads:
    """answer None: not proven either way. `why` says what was seen, in words."""

    answer: Literal["yes", "no"] | None
    why: str = ""


def reads(knob: Knob, units: Iterable[UnitFacts]) -> Reads:
    """Whether every instance of the knob reads its variable; one that does not is enough for no."""
    found = [(f"{unit.service}@{unit.host}", _one(knob, unit)) for unit in units]
    for instance, one in found:
        if one.answer == "no":
            return Reads("no", f"{instance} {one.why}")
    if found and all(one.answer == "yes" for _, one in found):
        return Reads("yes", found[0][1].why)
    return Reads(None)


def _one(known: Knob, unit: UnitFacts) -> Reads:
    knob = known.at(unit.service)
    from_log = _from_log(knob.env, unit)
    if from_log.answer is not None:
        return from_log
    body = server_info(unit)
    if body is None:
        return Reads(None)
    value = None if wrapped(unit) is not None else _in_environment(knob.env, unit)
    if knob.reported is not None:
        return _from_report(knob, body, knob.reported.path, value)
    return _from_variables(knob.env, body, value)


def _from_log(variable: str, unit: UnitFacts) -> Reads:
    """The last line of the log that names the variable, as far as the end of the log was read."""
    name = re.escape(variable)
    unknown = re.compile(rf"(?i)unknown\b.{{0,40}}\benvironment variable\b.*\b{name}\b")
    invalid = re.compile(rf"(?i)invalid value for {name}\b")
    for line in reversed(unit.log.lines if unit.log is not None else ()):
        if unknown.search(line):
            return Reads("no", f"says in its log: {line.strip()[:MOST_TEXT]}")
        if invalid.search(line):
            return Reads("yes", f"read it and refused its value: {line.strip()[:MOST_TEXT]}")
    return Reads(None)


def _from_report(knob: Knob, body: str, path: str, value: str | None) -> Reads:
    said = reported_value(body, path)
    if said is None:
        known, lists_set = _beside(body, path)
        if known and (value is not None or not lists_set):
            return Reads("no", f"reports its settings, and {knob.env} is not among them ({path})")
        return Reads(None)
    if value is None or said == value:
        return Reads("yes", f"reports {said}")
    if value_problem(knob, value) is not None:
        return Reads(None)  # a value that cannot be taken says nothing about the variable
    return Reads("no", f"reports {said} although {value[:40]} is in its environment")


def _from_variables(variable: str, body: str, value: str | None) -> Reads:
    """Without a path: the lists of variables that the server reports by itself."""
    try:
        document: JsonValue = json.loads(body)
    except (ValueError, RecursionError):
        return Reads(None)
    states = document.get("internal_states") if isinstance(document, dict) else None
    listed = (
        [one[ENV_VARS] for one in states if isinstance(one, dict) and ENV_VARS in one]
        if isinstance(states, list)
        else []
    )
    known = [one for one in listed if isinstance(one, dict)]
    if not known or value is None:
        return Reads(None)
    if all(variable in one for one in known):
        return Reads("yes", "reports it among its variables")
    return Reads("no", f"reports its variables, and {variable} is not among them")


def _beside(body: str, path: str) -> tuple[bool, bool]:
    """Whether there is something where the value would stand; whether that lists only variables that are set."""
    parent, _, _ = path.rpartition(".")
    try:
        found: JsonValue = json.loads(body)
    except (ValueError, RecursionError):
        return False, False
    for part in parent.split(".") if parent else ():
        if isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        elif isinstance(found, dict) and part in found:
            found = found[part]
        else:
            return False, False
    return isinstance(found, dict) and bool(found), parent.rpartition(".")[2] == ENV_VARS


def server_info(unit: UnitFacts) -> str | None:
    """What the unit's own server says of itself; nothing when somebody else has its port."""
    answer = next((a for a in unit.http if a.id == "server_info" and a.status == 200 and not a.truncated), None)
    return None if answer is None or taken(unit.port) else answer.body


def _in_environment(variable: str, unit: UnitFacts) -> str | None:
    """The value that the main process was started with."""
    main = next((p for p in unit.processes if p.main and p.variable == variable), None)
    return main.value if main is not None and main.answer == "present" else None
