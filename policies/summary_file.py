"""An evidence summary as a person types it, read from YAML (or JSON, which is YAML).

    value: 512
    baseline: unset
    metric: output_throughput
    points: {C64: +12.8 %, C96: +5.7 %, C80: +1.2 %}
    correctness: {compared: 200, differing: 0}

A point is a change in percent, or a mapping {ratio, n_a, n_b}. Without n a point is one run per arm.
"""

from __future__ import annotations

import re

import yaml
from pydantic import JsonValue, ValidationError

from policies.errors import OpsError
from policies.evidence import Summary

PERCENT = re.compile(r"(?P<sign>[+\-−])\s*(?P<number>[0-9]+(\.[0-9]+)?)\s*%")
LOAD = re.compile(r"[Cc]?(?P<concurrency>[0-9]{1,6})")
MAX_BYTES = 65536


class SummaryError(OpsError):
    """The summary cannot be read; the message names the field and what was expected."""


def read_summary(text: str, file: str, knob: str) -> Summary:
    """The summary in `text`, for `knob`.

    Raises: SummaryError.
    """
    if len(text.encode()) > MAX_BYTES:
        raise SummaryError(f"{file}: larger than {MAX_BYTES} bytes, expected a typed summary")
    if re.search(r"(^|[\s:\[{,])[&*][A-Za-z0-9_]", text):
        raise SummaryError(f"{file}: holds a yaml anchor or alias, expected plain values", hint="write the value out")
    try:
        found: JsonValue = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise SummaryError(f"{file}{line}: not yaml: {getattr(error, 'problem', error)}") from error
    if not isinstance(found, dict):
        raise SummaryError(f"{file}: expected a mapping with `value` and `points`, found {type(found).__name__}")
    document = {str(key): value for key, value in found.items()}
    named = document.setdefault("knob", knob)
    if named != knob:
        raise SummaryError(f"{file}: knob is `{named}`, asked for `{knob}`", hint="record it for the knob it is about")
    for key in ("value", "baseline", "measured_on"):
        if document.get(key) is not None:
            document[key] = str(document[key])
    if document.get("baseline") == "unset":
        document["baseline"] = None
    points = document.get("points")
    if isinstance(points, dict):
        document["points"] = [_point(file, load, point) for load, point in points.items()]
    try:
        return Summary.model_validate(document)
    except ValidationError as error:
        problems = [f"{file}: {_path(e['loc'])}: {e['msg'].lower()}" for e in error.errors(include_url=False)]
        raise SummaryError("\n".join(problems), hint="see `clawback evidence record --help` for an example") from error


def _point(file: str, load: object, point: JsonValue) -> dict[str, JsonValue]:
    found = LOAD.fullmatch(str(load))
    if found is None:
        raise SummaryError(f"{file}: point `{load}`: expected a concurrency such as C64")
    concurrency = int(found["concurrency"])
    if isinstance(point, dict):
        return {"concurrency": concurrency, **point}
    change = PERCENT.fullmatch(str(point).strip())
    if change is None:
        raise SummaryError(f"{file}: point `{load}`: `{point}` is no change in percent, expected such as `+12.8 %`")
    percent = float(change["number"]) * (1 if change["sign"] == "+" else -1)
    return {"concurrency": concurrency, "ratio": round(1 + percent / 100, 10)}


def _path(loc: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in loc) or "file"
