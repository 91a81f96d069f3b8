"""Structure and limits of the common blocks by hand, for runs without the published schema.

Source: Slack's block reference, the same numbers as in the schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sandbox.slack.blockschema import Problem, problem
from sandbox.slack.records import Json

BUTTON_TEXT, BUTTON_VALUE, BUTTON_URL = 75, 2000, 3000
OPTION_TEXT, OPTION_VALUE = 75, 150
MOST_OPTIONS = {"overflow": 5, "checkboxes": 10, "radio_buttons": 10}
KEYS: dict[str, set[str]] = {
    "section": {"type", "block_id", "text", "fields", "accessory", "expand"},
    "header": {"type", "block_id", "text", "level"},
    "context": {"type", "block_id", "elements"},
    "actions": {"type", "block_id", "elements"},
    "divider": {"type", "block_id"},
    "markdown": {"type", "block_id", "text"},
    "table": {"type", "block_id", "rows", "column_settings"},
    "button": {"type", "action_id", "text", "value", "url", "style", "confirm", "accessibility_label"},
}


def limits(block: Json, pointer: str) -> Iterator[Problem]:
    """Problems of one block; kinds that are not common pass."""
    yield from _keys(block, pointer)
    match block.get("type"):
        case "section":
            yield from _section(block, pointer)
        case "header":
            yield from text_object(block.get("text"), f"{pointer}/text", 150, plain=True)
        case "context":
            for place, element in _items(block, "elements", pointer, 10):
                if isinstance(element, dict) and element.get("type") != "image":
                    yield from text_object(element, place, 3000)
            yield from _counted(block, "elements", pointer, 10)
        case "actions":
            yield from _counted(block, "elements", pointer, 25)
            for place, element in _items(block, "elements", pointer, 25):
                yield from _element(element, place)
        case "markdown":
            yield from _string(block.get("text"), f"{pointer}/text", 12_000)
        case "table":
            yield from _table(block, pointer)
        case _:
            return


def _keys(thing: Json, pointer: str) -> Iterator[Problem]:
    known = KEYS.get(str(thing.get("type")))
    for key in thing:
        if known is not None and key not in known:
            yield problem(pointer, f"unexpected property {key!r}", "additionalProperties", False)


def _section(block: Json, pointer: str) -> Iterator[Problem]:
    if "text" not in block and "fields" not in block:
        yield problem(pointer, "a section needs text or fields", "required", ["text", "fields"])
    if "text" in block:
        yield from text_object(block["text"], f"{pointer}/text", 3000)
    if "fields" in block:
        yield from _counted(block, "fields", pointer, 10)
        for place, field in _items(block, "fields", pointer, 10):
            yield from text_object(field, place, 2000)
    if "accessory" in block:
        yield from _element(block["accessory"], f"{pointer}/accessory")


def _table(block: Json, pointer: str) -> Iterator[Problem]:
    yield from _counted(block, "rows", pointer, 100)
    for place, row in _items(block, "rows", pointer, 100):
        if not isinstance(row, list) or not 1 <= len(row) <= 20:
            yield problem(place, "a row has 1 to 20 cells", "maxItems", 20)


def _counted(thing: Json, key: str, pointer: str, most: int) -> Iterator[Problem]:
    value = thing.get(key)
    if not isinstance(value, list) or not value:
        yield problem(f"{pointer}/{key}", f"{key} must be a list of 1 to {most}", "minItems", 1)
    elif len(value) > most:
        yield problem(f"{pointer}/{key}", f"no more than {most} items allowed", "maxItems", most)


def _items(thing: Json, key: str, pointer: str, most: int) -> Iterator[tuple[str, Any]]:
    value = thing.get(key)
    if isinstance(value, list):
        for index, item in enumerate(value[: most + 1]):
            yield f"{pointer}/{key}/{index}", item


def _string(value: Any, pointer: str, most: int) -> Iterator[Problem]:
    if not isinstance(value, str) or not value:
        yield problem(pointer, "must be more than 0 characters", "minLength", 1)
    elif len(value) > most:
        yield problem(pointer, f"must be less than {most + 1} characters", "maxLength", most)


def text_object(value: Any, pointer: str, most: int, *, plain: bool = False) -> Iterator[Problem]:
    """Problems of a text object with at most so many characters."""
    allowed = {"plain_text"} if plain else {"plain_text", "mrkdwn"}
    if not isinstance(value, dict):
        yield problem(pointer, "a text object is missing", "required", sorted(allowed))
        return
    kind = value.get("type")
    if kind not in allowed:
        yield problem(f"{pointer}/type", f"unsupported type: {kind}", "enum", sorted(allowed))
        return
    for key in set(value) - {"type", "text", "emoji" if kind == "plain_text" else "verbatim"}:
        yield problem(pointer, f"unexpected property {key!r}", "additionalProperties", False)
    yield from _string(value.get("text"), f"{pointer}/text", most)


def _element(value: Any, pointer: str) -> Iterator[Problem]:
    if not isinstance(value, dict) or not isinstance(value.get("type"), str):
        yield problem(pointer, "an element must be an object with a type", "required", "type")
        return
    yield from _keys(value, pointer)
    if value["type"] == "button":
        yield from text_object(value.get("text"), f"{pointer}/text", BUTTON_TEXT, plain=True)
        for key, most in (("value", BUTTON_VALUE), ("url", BUTTON_URL), ("accessibility_label", 75)):
            if key in value:
                yield from _string(value[key], f"{pointer}/{key}", most)
        if value.get("style", "primary") not in {"primary", "danger"}:
            yield problem(f"{pointer}/style", "style is primary or danger", "enum", ["primary", "danger"])
    if "options" in value:
        most = MOST_OPTIONS.get(value["type"], 100)
        yield from _counted(value, "options", pointer, most)
        for place, option in _items(value, "options", pointer, most):
            plain = value["type"] not in MOST_OPTIONS or value["type"] == "overflow"
            text = option.get("text") if isinstance(option, dict) else None
            yield from text_object(text, f"{place}/text", OPTION_TEXT, plain=plain)
            yield from _string(
                option.get("value") if isinstance(option, dict) else None, f"{place}/value", OPTION_VALUE
            )
    if "confirm" in value:
        yield from _confirm(value["confirm"], f"{pointer}/confirm")


def _confirm(value: Any, pointer: str) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield problem(pointer, "confirm must be an object", "type", "object")
        return
    yield from text_object(value.get("title"), f"{pointer}/title", 100, plain=True)
    yield from text_object(value.get("text"), f"{pointer}/text", 300)
    for key in ("confirm", "deny"):
        if key not in value:
            yield problem(pointer, f"{key!r} is a required property", "required", key)
            continue
        yield from text_object(value.get(key), f"{pointer}/{key}", 30, plain=True)
