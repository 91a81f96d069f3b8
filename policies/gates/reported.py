"""Does the engine itself say that it runs with the value?"""

from __future__ import annotations

import json

from pydantic import JsonValue

from policies.facts import HttpAnswer
from policies.finding import Verdict
from policies.gates import Values, failed, passed, readable, undecided


def reported_value(body: str, path: str) -> str | None:
    """The text at a dotted path of the JSON body (numbers index lists); None when it is not there.

    A number or truth value is given as JSON spells it, so that 512 and "512" both read `512`.
    """
    try:
        found: JsonValue = json.loads(body)
    except (ValueError, RecursionError):
        return None
    for part in path.split("."):
        if isinstance(found, dict) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            return None
    if found is None:
        return None
    return readable(found) if isinstance(found, str) else json.dumps(found)


def judge(instance: str, answer: HttpAnswer | None, path: str, wanted: str | None) -> Verdict:
    """Pass when the engine reports exactly `wanted`. For an unset knob nothing is asked of the engine's default."""
    values: Values = {"instance": instance, "path": path, "wanted": wanted}
    if answer is None or answer.status != 200:
        values["status"] = answer.status if answer else None
        return undecided("gate.reported.no-answer", values)
    reported = reported_value(answer.body, path)
    values["reported"] = reported
    if wanted is None:
        return passed("gate.reported.unset", values)
    if reported is None:
        return undecided("gate.reported.not-there", values)
    if reported != wanted:
        return failed("gate.reported.differs", values)
    return passed("gate.reported.same", values)
