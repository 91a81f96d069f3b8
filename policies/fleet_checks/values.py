"""Typed reading of YAML nodes: every getter gives a usable value and records what was wrong.

A wrong value is replaced by its default or an empty one, so that one pass finds every error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

import yaml
from pydantic import JsonValue

from policies.fleet_checks.problems import Path, Problems, listed, quote, suggestion


@dataclass(frozen=True, slots=True)
class Form:
    """What a text must look like, as a pattern for the whole and in words."""

    pattern: str
    code: str
    expected: str
    hint: str


name_form = Form(
    r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}",
    "name.form",
    "letters, digits, '_', '.' and '-', at most 64, beginning with a letter or digit",
    "choose a short name without blanks, e.g. 'decode'",
)
duration_pattern = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m|h|d)")
unit_s = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "h": Decimal(3600), "d": Decimal(86400)}
int_pattern = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,17})")
float_pattern = re.compile(r"[+-]?[0-9]{1,18}(?:\.[0-9]{0,18})?(?:[eE][+-]?[0-9]{1,3})?")
max_text = 8192
max_entries = 500  # of one list or one section: checks across entries are quadratic
E = TypeVar("E")
W = TypeVar("W", bound=str)


def kind_of(node: yaml.Node) -> str:
    """What a node is, for "expected X, found Y"."""
    if isinstance(node, yaml.MappingNode):
        return "a mapping"
    if isinstance(node, yaml.SequenceNode):
        return "a list"
    if is_empty(node):
        return "nothing"
    return quote(str(node.value))


def is_empty(node: yaml.Node) -> bool:
    """True for a key without a value, `null` and `~`."""
    return isinstance(node, yaml.ScalarNode) and bool(node.tag == "tag:yaml.org,2002:null")


def plain(node: yaml.Node) -> str | None:
    """The text of an unquoted scalar, else None."""
    if isinstance(node, yaml.ScalarNode) and node.style is None:
        return str(node.value)
    return None


def number(node: yaml.Node) -> int | float | None:
    """A decimal number as people write it (`512`, `0.5`, `1e6`), else None. Not YAML's `010`, `1:30`, `.inf`."""
    text = plain(node)
    if text is None:
        return None
    if int_pattern.fullmatch(text):
        return int(text)
    if float_pattern.fullmatch(text) and not re.match(r"[+-]?0[0-9]", text):
        value = float(text)
        return value if math.isfinite(value) else None
    return None


class Reader:
    """Reads single nodes; holds the error list."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems

    def mark(self, path: Path, node: yaml.Node) -> None:
        """Remember the line of a value."""
        self.problems.lines[path] = node.start_mark.line + 1

    def wrong(self, path: Path, code: str, expected: str, node: yaml.Node, hint: str) -> None:
        """Record a value of the wrong kind."""
        self.problems.add(path, code, f"expected {expected}, found {kind_of(node)}", hint)

    def text(self, path: Path, node: yaml.Node, *, raw: bool = False, lines: bool = False) -> str:
        """A string. `raw` also takes unquoted numbers and yes/no words as they are typed."""
        self.mark(path, node)
        if not isinstance(node, yaml.ScalarNode) or is_empty(node):
            self.wrong(path, "type.text", "text", node, "write text, in quotes when it holds : # { or [")
            return ""
        value = str(node.value)
        if node.tag != "tag:yaml.org,2002:str" and not raw:
            hint = f'put it in quotes: "{value[:40]}"' if value.isprintable() else "put it in quotes"
            self.wrong(path, "type.text", "text", node, hint)
            return ""
        if any(not c.isprintable() and not (lines and c in "\n\t") for c in value):
            self.problems.add(
                path,
                "text.control",
                f"{quote(value)} holds a control character, expected one line of printable text",
                "remove it",
            )
            return ""
        if len(value) > max_text:
            self.problems.add(path, "text.long", f"{len(value)} characters, expected at most {max_text}", "shorten it")
            return ""
        return value

    def matching(self, path: Path, node: yaml.Node, form: Form) -> str:
        """A string that matches as a whole, else an empty one."""
        value = self.text(path, node, raw=True)
        if value and not re.fullmatch(form.pattern, value):
            message = f"{quote(value)} does not fit, expected {form.expected}"
            self.problems.add(path, form.code, message, form.hint)
            return ""
        if not value and isinstance(node, yaml.ScalarNode) and not is_empty(node) and not node.value:
            self.problems.add(path, form.code, f"empty, expected {form.expected}", form.hint)
        return value

    def word(self, path: Path, node: yaml.Node, words: tuple[W, ...], code: str) -> W:
        """One of a few words; the first of them when it is none."""
        value = self.text(path, node, raw=True)
        for word in words:
            if value == word:
                return word
        if isinstance(node, yaml.ScalarNode) and not is_empty(node):
            message = f"{quote(value)} is not known here, expected one of: {listed(words)}"
            self.problems.add(path, code, message, suggestion(value, words))
        return words[0]

    def whole(self, path: Path, node: yaml.Node, low: int, high: int, default: int) -> int:
        """An int in [low, high]."""
        self.mark(path, node)
        value = number(node)
        if not isinstance(value, int):
            self.wrong(path, "type.int", f"a whole number {low}..{high}", node, f"write e.g. {default}")
            return default
        if not low <= value <= high:
            message = f"{value} is out of range, expected {low}..{high}"
            self.problems.add(path, "number.range", message, f"write e.g. {default}")
            return default
        return value

    def duration(
        self, path: Path, node: yaml.Node, default_s: float, low_s: float = 0.001, high_s: float = math.inf
    ) -> float:
        """Seconds of `25s`, `500ms`, `5m`, `2h`, `90d`."""
        self.mark(path, node)
        text = str(node.value) if isinstance(node, yaml.ScalarNode) else ""
        match = duration_pattern.fullmatch(text)
        if match is None:
            bare = re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,3})?", text)
            hint = f"write {text}s" if bare else "write e.g. 500ms, 25s, 5m, 2h or 90d"
            code = "duration.no_unit" if bare else "duration.form"
            self.wrong(path, code, "a number with a unit: ms, s, m, h or d", node, hint)
            return default_s
        value = float(Decimal(match[1]) * unit_s[match[2]])
        if value < low_s:
            self.problems.add(
                path,
                "duration.too_short",
                f"{quote(text)} is too short, expected {low_s:g}s or more",
                f"write e.g. {default_s:g}s" if default_s >= low_s else f"write {low_s:g}s or more",
            )
            return default_s
        if value > high_s:
            message = f"{quote(text)} is too long, expected {high_s:g}s or less"
            self.problems.add(path, "duration.too_long", message, f"write e.g. {min(default_s, high_s):g}s")
            return default_s
        return value

    def items(self, path: Path, node: yaml.Node) -> list[yaml.Node]:
        """The members of a list."""
        self.mark(path, node)
        if isinstance(node, yaml.SequenceNode):
            return self.not_too_many(path, list(node.value))
        text = plain(node)
        hint = f"write [{text}]" if text and len(text) < 60 and not is_empty(node) else "write [one, two]"
        self.wrong(path, "type.list", "a list", node, hint)
        return []

    def not_too_many(self, path: Path, entries: list[E]) -> list[E]:
        """The entries, cut at the limit with an error."""
        if len(entries) > max_entries:
            message = f"{len(entries)} entries, expected at most {max_entries}"
            self.problems.add(path, "list.too_many", message, "split the fleet into several files, one a fleet")
        return entries[:max_entries]

    def texts(self, path: Path, node: yaml.Node, read: Callable[[Path, yaml.Node], str]) -> tuple[str, ...]:
        """A list of strings, not empty, none twice."""
        found: list[str] = []
        items = self.items(path, node)
        for i, item in enumerate(items):
            value = read((*path, i), item)
            if value and value in found:
                message = f"{quote(value)} stands twice, expected once"
                self.problems.add((*path, i), "list.duplicate", message, "remove one of the two")
            elif value:
                found.append(value)
        if isinstance(node, yaml.SequenceNode) and not items:
            self.problems.add(path, "list.empty", "the list is empty, expected one entry or more", "add one")
        return tuple(found)

    def json(self, path: Path, node: yaml.Node) -> JsonValue:
        """A JSON value. Words that YAML 1.1 reads in its own way (`yes`, `1:30`, dates) must be quoted."""
        self.mark(path, node)
        if isinstance(node, yaml.MappingNode):
            return {
                self.text((*path, str(key.value)), key, raw=True): self.json((*path, str(key.value)), value)
                for key, value in node.value
                if isinstance(key, yaml.ScalarNode)
            }
        if isinstance(node, yaml.SequenceNode):
            return [self.json((*path, i), item) for i, item in enumerate(node.value)]
        value = number(node)
        if value is not None:
            return value
        word = plain(node)
        if word in {"true", "false"}:
            return word == "true"
        if is_empty(node):
            return None
        return self.text(path, node, lines=True)
