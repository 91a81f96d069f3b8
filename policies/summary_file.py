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
from difflib import get_close_matches

import yaml
from pydantic import JsonValue, ValidationError

from policies.correctness import problem
from policies.errors import OpsError
from policies.evidence import Point, Summary
from policies.plain_yaml import PlainLoader

PERCENT = re.compile(r"(?P<sign>[+\-−])\s*(?P<number>[0-9]+(\.[0-9]+)?)\s*%")
LOAD = re.compile(r"[Cc]?(?P<concurrency>[0-9]{1,6})")
MAX_BYTES = 65536
AS_TYPED = ("value", "baseline", "measured_on")
NULL = "tag:yaml.org,2002:null"


class SummaryError(OpsError):
    """The summary cannot be read; the message names the field and what was expected."""


def read_summary(text: str, file: str, knob: str) -> Summary:
    """The summary in `text`, for `knob`.

    Raises: SummaryError.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise SummaryError(f"{file}: larger than {MAX_BYTES} bytes, expected a typed summary")
    document = _document(text, file)
    named = document.setdefault("knob", knob)
    if named != knob:
        raise SummaryError(f"{file}: knob is `{named}`, asked for `{knob}`", hint="record it for the knob it is about")
    if document.get("baseline") == "unset":
        document["baseline"] = None
    points = document.get("points")
    if isinstance(points, dict):
        read = [_point(file, load, point) for load, point in points.items()]
        loads = [point["concurrency"] for point in read]
        twice = next((load for load in loads if loads.count(load) > 1), None)
        if twice is not None:
            raise SummaryError(f"{file}: point C{twice} twice, expected it once")
        document["points"] = [*read]
    try:
        summary = Summary.model_validate(document)
    except ValidationError as error:
        found = [(e["loc"], e["type"], e["msg"].lower()) for e in error.errors(include_url=False)]
        problems = [f"{file}: {_path(loc)}: {said}{_meant(loc, kind)}" for loc, kind, said in found]
        raise SummaryError("\n".join(problems), hint="see `clawback evidence record --help` for an example") from error
    wrong = problem(summary.correctness) if summary.correctness is not None else None
    if wrong is not None:
        raise SummaryError(f"{file}: correctness: {wrong}")
    return summary


def _document(text: str, file: str) -> dict[str, JsonValue]:
    """The mapping by key; a value of a knob is kept as it was typed: yaml would read `010` as 8 and `on` as True."""
    try:
        loader = PlainLoader(text)
        node = loader.get_single_node()
        found: JsonValue = loader.construct_document(node) if node is not None else None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise SummaryError(f"{file}{line}: not a summary: {getattr(error, 'problem', error)}") from error
    if not isinstance(found, dict) or not isinstance(node, yaml.MappingNode):
        raise SummaryError(f"{file}: expected a mapping with `value` and `points`, found {type(found).__name__}")
    typed = {
        key.value: value.value
        for key, value in node.value
        if key.value in AS_TYPED and isinstance(value, yaml.ScalarNode) and value.tag != NULL
    }
    document: dict[str, JsonValue] = {**{str(key): value for key, value in found.items()}, **typed}
    context = next((value for key, value in node.value if key.value == "context"), None)
    if isinstance(context, yaml.MappingNode) and all(isinstance(v, yaml.ScalarNode) for _, v in context.value):
        document["context"] = {key.value: value.value for key, value in context.value}  # `commit: 0012` is no 10
    return document


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


def _meant(loc: tuple[int | str, ...], kind: str) -> str:
    """The key of a summary or of a point that a misspelt one looks like."""
    known = {1: tuple(Summary.model_fields), 3: tuple(Point.model_fields)}.get(len(loc), ())
    if kind != "extra_forbidden":
        return ""
    near = get_close_matches(str(loc[-1]), known, n=1)
    return f", did you mean `{near[0]}`?" if near else ""


def _path(loc: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in loc) or "file"
