"""Block Kit rules that no schema holds: counts and sums over a whole message or view, and unique ids.

Source: Slack's block reference and error lists; the 13,200 characters are from bolt-js#2509.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

from sandbox.slack.blocklimits import limits
from sandbox.slack.blockschema import BlockSchema, Problem, problem
from sandbox.slack.records import Json

Surface = Literal["message", "modal", "home"]

MOST_BLOCKS: dict[Surface, int] = {"message": 50, "modal": 100, "home": 100}
MOST_CHARACTERS = 13_200
MOST_MARKDOWN = 12_000
MOST_TABLE_TEXT = 10_000
ONE_TABLE = frozenset({"table", "data_table"})
_EVERYWHERE = {"actions", "card", "context", "divider", "header", "image", "input", "rich_text", "section", "video"}
SURFACES: dict[Surface, set[str]] = {
    "message": _EVERYWHERE
    | {"carousel", "container", "context_actions", "data_table", "data_visualization", "file", "markdown"}
    | {"plan", "table", "task_card"},
    "modal": _EVERYWHERE | {"alert"},
    "home": _EVERYWHERE | {"carousel", "container", "data_table", "data_visualization", "table"},
}


class BlockJudge:
    """Judges blocks: by schema where the reference data is there, by hand always."""

    def __init__(self, schema: BlockSchema | None) -> None:
        self._schema = schema

    def blocks(self, value: Any, surface: Surface, base: str = "") -> list[Problem]:
        """Problems of a list of blocks, in order of place."""
        if not isinstance(value, list):
            return [problem(base, "blocks must be a list", "type", "array")]
        found: list[Problem] = []
        if len(value) > MOST_BLOCKS[surface]:
            found.append(
                problem(base, f"{len(value)} blocks, no more than {MOST_BLOCKS[surface]} allowed",
                        "maxItems", MOST_BLOCKS[surface])
            )  # fmt: skip
        for index, block in enumerate(value):
            found.extend(self._block(block, surface, f"{base}/{index}"))
        dicts = [block for block in value if isinstance(block, dict)]
        found.extend(_unique(dicts, base))
        if surface == "message":
            found.extend(_sums(dicts, base))
        return found

    def _block(self, block: Any, surface: Surface, pointer: str) -> Iterator[Problem]:
        if not isinstance(block, dict):
            yield problem(pointer, "a block must be an object", "type", "object")
            return
        kind = block.get("type")
        if kind not in SURFACES[surface]:
            yield problem(f"{pointer}/type", f"unsupported type: {kind}", "enum", sorted(SURFACES[surface]))
            return
        if surface == "message" and kind == "task_card" and block.get("status") == "pending":
            yield problem(f"{pointer}/status", "a standalone task_card is never pending", "enum",
                          ["in_progress", "complete", "error"])  # fmt: skip
        if self._schema is not None and self._schema.has(f"{kind}_block"):
            yield from self._schema.judge(f"{kind}_block", block, pointer)
        else:
            yield from limits(block, pointer)

    def view(self, value: Any) -> list[Problem]:
        """Problems of a modal or home view."""
        if not isinstance(value, dict):
            return [problem("", "a view must be an object", "type", "object")]
        kind = value.get("type")
        if kind not in {"modal", "home"}:
            return [problem("/type", f"unsupported type: {kind}", "enum", ["modal", "home"])]
        found = self.blocks(value.get("blocks"), "modal" if kind == "modal" else "home", "/blocks")
        if not value.get("blocks"):
            found.append(problem("/blocks", "a view needs blocks", "required", "blocks"))
        if kind == "modal":
            found.extend(_modal(value))
        if self._schema is not None:
            # the blocks have been judged above, so here only the frame around them
            stand_in: Json = {"type": "divider"}
            if any(isinstance(b, dict) and b.get("type") == "input" for b in value.get("blocks") or ()):
                stand_in = {
                    "type": "input",
                    "label": {"type": "plain_text", "text": "-"},
                    "element": {"type": "plain_text_input"},
                }
            found.extend(self._schema.judge(f"{kind}_view", value | {"blocks": [stand_in]}, ""))
        return found


def _modal(value: Json) -> Iterator[Problem]:
    for key in ("title", "submit", "close"):
        part = value.get(key)
        if part is None:
            if key == "title":
                yield problem("/title", "a modal needs a title", "required", "title")
        elif not isinstance(part, dict) or part.get("type") != "plain_text" or not part.get("text"):
            yield problem(f"/{key}", f"{key} must be plain_text", "type", "plain_text")
        elif len(part["text"]) > 24:
            yield problem(f"/{key}/text", f"{key} is longer than 24", "maxLength", 24)
    has_input = any(isinstance(b, dict) and b.get("type") == "input" for b in value.get("blocks") or ())
    if has_input and not value.get("submit"):
        yield problem("/submit", "a modal with an input needs submit", "required", "submit")
    if len(value.get("private_metadata") or "") > 3000:
        yield problem("/private_metadata", "longer than 3000", "maxLength", 3000)


def elements(block: Json, pointer: str = "") -> Iterator[tuple[str, Json]]:
    """Every interactive or nested element of a block with its pointer."""
    for key in ("elements", "actions", "child_blocks"):
        inner = block.get(key)
        if isinstance(inner, list):
            for index, element in enumerate(inner):
                if isinstance(element, dict):
                    yield f"{pointer}/{key}/{index}", element
                    yield from elements(element, f"{pointer}/{key}/{index}")
    for key in ("accessory", "element"):
        inner = block.get(key)
        if isinstance(inner, dict):
            yield f"{pointer}/{key}", inner


def _unique(blocks: list[Json], base: str) -> Iterator[Problem]:
    """block_id and action_id are unique in a message or view."""
    for name, counted in (
        ("block_id", [(f"{base}/{i}", b.get("block_id")) for i, b in enumerate(blocks)]),
        ("action_id", [(p, e.get("action_id")) for i, b in enumerate(blocks) for p, e in elements(b, f"{base}/{i}")]),
    ):
        seen: set[str] = set()
        for pointer, value in counted:
            if not isinstance(value, str):
                continue
            if len(value) > 255:
                yield problem(f"{pointer}/{name}", f"{name} is longer than 255", "maxLength", 255)
            if value in seen:
                yield problem(f"{pointer}/{name}", f"{name} {value!r} is used twice", "uniqueItems", name)
            seen.add(value)


def _sums(blocks: list[Json], base: str) -> Iterator[Problem]:
    kinds = Counter(str(block.get("type")) for block in blocks)
    if sum(kinds[kind] for kind in ONE_TABLE) > 1:
        yield Problem("only_one_table_allowed", "one table in a message", base, {"type": "maxItems", "expected": 1})
    if kinds["data_visualization"] > 2:
        yield problem(base, "two charts in a message", "maxItems", 2)
    markdown = sum(len(str(block.get("text", ""))) for block in blocks if block.get("type") == "markdown")
    if markdown > MOST_MARKDOWN:
        yield problem(base, f"{markdown} characters of markdown, no more than {MOST_MARKDOWN}", "maxLength",
                      MOST_MARKDOWN)  # fmt: skip
    for index, block in enumerate(blocks):
        most = {"table": MOST_TABLE_TEXT, "data_table": 2 * MOST_TABLE_TEXT}.get(str(block.get("type")))
        if most is not None and (length := sum(map(len, texts(block.get("rows"))))) > most:
            yield problem(f"{base}/{index}/rows", f"{length} characters in a table", "maxLength", most)
    total = sum(map(len, texts(blocks)))
    if total > MOST_CHARACTERS:
        yield Problem("msg_blocks_too_long", f"{total} characters in all blocks", base,
                      {"type": "maxLength", "expected": MOST_CHARACTERS})  # fmt: skip


def texts(value: Any) -> Iterator[str]:
    """Every string that a reader sees, anywhere in a value."""
    if isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key == "text" and isinstance(item, str):
                yield item
            else:
                yield from texts(item)


def mrkdwn(value: Any) -> list[str]:
    """Every string that is parsed as mrkdwn, anywhere in a value; plain_text is shown as it is."""
    if isinstance(value, list):
        return [text for item in value for text in mrkdwn(item)]
    if not isinstance(value, dict):
        return []
    own = [str(value.get("text"))] if value.get("type") in {"mrkdwn", "markdown"} else []
    return own + [text for item in value.values() for text in mrkdwn(item)]


def view_bytes(view: Json) -> int:
    """Size of a view as JSON. Units: bytes."""
    return len(json.dumps(view).encode())
