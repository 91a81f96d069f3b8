"""Block Kit structure and limits by JSON schema, with the error shown the way the platform shows it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from sandbox.slack.records import Json

SCHEMA_FILE = "block-kit/slack-block-kit.schema.json"


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a payload; `pointer` is a JSON pointer into the judged value."""

    code: str
    message: str
    pointer: str
    constraint: Json

    def shown(self) -> Json:
        """As blocks.validate lists it."""
        return {
            "code": self.code,
            "message": self.message,
            "pointer": self.pointer,
            "constraint": self.constraint,
        }


def problem(pointer: str, message: str, kind: str, expected: Any) -> Problem:
    """A failed constraint."""
    return Problem("failed_constraint", message, pointer, {"type": kind, "expected": expected})


class BlockSchema:
    """Validators for every block type and for views, from the published schema."""

    def __init__(self, reference: Path) -> None:
        document = json.loads((reference / SCHEMA_FILE).read_text())
        self._defs: dict[str, Json] = document["$defs"]
        _loosen(self._defs)
        self._validators: dict[str, Draft202012Validator] = {}

    @property
    def block_types(self) -> list[str]:
        """Every known block type."""
        names = [entry["$ref"].rsplit("/", 1)[1] for entry in self._defs["block"]["oneOf"]]
        return sorted(name.removesuffix("_block") for name in names)

    def judge(self, definition: str, value: Any, pointer: str) -> list[Problem]:
        """Problems of a value against a definition such as `section_block` or `modal_view`."""
        found: list[Problem] = []
        for error in self._validator(definition).iter_errors(value):
            found.extend(_flatten(error, pointer))
        return found

    def has(self, definition: str) -> bool:
        """Whether the schema knows this definition."""
        return definition in self._defs

    def _validator(self, definition: str) -> Draft202012Validator:
        if definition not in self._validators:
            schema = {"$ref": f"#/$defs/{definition}", "$defs": self._defs}
            self._validators[definition] = Draft202012Validator(schema)
        return self._validators[definition]


def _loosen(defs: dict[str, Json]) -> None:
    """Where sources differ, take the larger number: a rejection here must be one of the platform's too.

    Source: slackblocks 3.0.0 and slack-morphism 2.30 against the documentation of spring 2026.
    """
    defs["data_table_block"]["properties"]["rows"]["maxItems"] = 201
    card = defs["card_block"]["properties"]
    card["actions"]["maxItems"] = 3
    card |= {"slack_icon": {"type": "object"}, "subtext": card["body"]}
    defs["workflow_button_element"]["required"].remove("action_id")
    for chart in defs["data_visualization_chart"]["oneOf"]:
        for key in ("series", "segments"):
            if key in chart["properties"]:
                chart["properties"][key]["maxItems"] = 12


def _flatten(error: ValidationError, base: str) -> Iterator[Problem]:
    """The innermost causes: of alternatives, only the one that the value's `type` chose."""
    if error.validator in {"oneOf", "anyOf"} and error.context:
        branches: dict[int, list[ValidationError]] = {}
        for inner in error.context:
            branches.setdefault(int(inner.schema_path[0]), []).append(inner)
        chosen = [errors for errors in branches.values() if not any(_wrong_type(e, error) for e in errors)]
        if not chosen:
            value = error.instance.get("type") if isinstance(error.instance, dict) else error.instance
            expected = sorted({str(e.validator_value) for errors in branches.values() for e in errors
                               if _wrong_type(e, error) and e.validator == "const"})  # fmt: skip
            where = _pointer(base, error) + ("/type" if isinstance(error.instance, dict) else "")
            yield problem(where, f"unsupported type: {value}", "enum", expected)
            return
        for inner in min(chosen, key=len):
            yield from _flatten(inner, base)
        return
    limit = error.validator_value if isinstance(error.validator_value, (int, str, list, bool)) else None
    yield problem(_pointer(base, error), _sentence(error), str(error.validator), limit)


def _sentence(error: ValidationError) -> str:
    """The cause in the platform's tone, without repeating a long value."""
    limit: Any = error.validator_value
    match error.validator:
        case "maxLength":
            return f"must be less than {limit + 1} characters"
        case "minLength":
            return f"must be more than {limit - 1} characters"
        case "maxItems":
            return f"no more than {limit} items allowed"
        case "minItems":
            return f"no fewer than {limit} items allowed"
        case "required" | "additionalProperties" | "const" | "enum":
            return error.message[:300]
        case _:
            return f"does not satisfy {error.validator}"


def _wrong_type(inner: ValidationError, outer: ValidationError) -> bool:
    """Whether this alternative is out because the value says it is of another type."""
    below = list(inner.absolute_path)[len(outer.absolute_path) :]
    if inner.validator in {"oneOf", "anyOf"} and not below and inner.context:
        branches: dict[int, list[ValidationError]] = {}
        for deeper in inner.context:
            branches.setdefault(int(deeper.schema_path[0]), []).append(deeper)
        return all(any(_wrong_type(e, outer) for e in errors) for errors in branches.values())
    if below == ["type"] and inner.validator in {"const", "enum"}:
        return True
    return not below and inner.validator == "type"


def _pointer(base: str, error: ValidationError) -> str:
    return base + "".join(f"/{part}" for part in error.absolute_path)
