"""A text cut into JSON documents, each of which knows the line that any of its values stands on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from json.decoder import scanstring  # type: ignore[attr-defined]  # public in the module, absent in the stubs
from typing import Protocol

from pydantic import JsonValue

Key = str | int
SPACE = re.compile(r"[ \t\r\n]*")
LABEL = re.compile(r"\[(?!true|false|null|NaN|Infinity)[A-Za-z]")  # `[run 1]` names what follows, it is no list
MOST_BROKEN = 20


class Located(Protocol):
    """A document whose values know their line."""

    @property
    def value(self) -> JsonValue:
        """The whole document."""

    def line_of(self, path: Sequence[Key]) -> int:
        """The line of the value at `path`, or of what holds it when it is not there."""


@dataclass(frozen=True, slots=True)
class Source:
    """One JSON document of a text, from `start`, which is on `line`."""

    text: str
    start: int
    line: int
    value: JsonValue
    _places: dict[int, dict[Key, int]] = field(default_factory=dict, compare=False, repr=False)

    def line_of(self, path: Sequence[Key]) -> int:
        """The line of the value at `path`, or of what holds it when it is not there."""
        at = self.start
        for key in path:
            if at not in self._places:
                self._places[at] = dict(_members(self.text, at))
            inner = self._places[at].get(key)
            if inner is None:
                break
            at = inner
        return self.line + self.text.count("\n", self.start, at)

    def entries(self) -> Iterator[Source]:
        """The entries of a list as documents of their own."""
        values = self.value if isinstance(self.value, list) else []
        before, line = self.start, self.line
        for value, (_, at) in zip(values, _members(self.text, self.start), strict=False):
            line += self.text.count("\n", before, at)
            before = at
            yield Source(text=self.text, start=at, line=line, value=value)


@dataclass(frozen=True, slots=True)
class Broken:
    """A place that cannot be read."""

    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Label:
    """A line between results that is no result."""

    line: int


class _Decoder(json.JSONDecoder):
    """JSON with bare NaN and Infinity. A key twice in one object is noticed: the last would win silently."""

    def __init__(self) -> None:
        super().__init__(object_pairs_hook=self._pairs)
        self.twice: list[str] = []

    def _pairs(self, pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        found = dict(pairs)
        if len(found) != len(pairs):
            names = [name for name, _ in pairs]
            self.twice += [name for name in found if names.count(name) > 1][:1]
        return found


def documents(text: str) -> Iterator[Source | Broken | Label]:
    """The JSON documents of a text in order: one document, one a line, or several after each other.

    Broken ones are told with their line; reading goes on at the next line that starts with `{`.
    """
    at, line, broken = 0, 1, 0
    while True:
        after = SPACE.match(text, at).end()  # type: ignore[union-attr]  # matches the empty text too
        line += text.count("\n", at, after)
        at = after
        if at == len(text):
            return
        if text[at] not in "{[" or LABEL.match(text, at):
            yield Label(line)
            at = _next_line(text, at)
            line += text[at - 1] == "\n"
            continue
        found, end = _decode(text, at, line)
        yield found
        if isinstance(found, Broken):
            broken += 1
            end = _next_object(text, at)
            if broken == MOST_BROKEN and end < len(text):
                yield Broken(line, f"reading stopped here, after {MOST_BROKEN} broken places")
                return
        else:
            rest = text[end : _next_line(text, end)].strip()
            if rest:
                yield Broken(line + text.count("\n", at, end), "text after a result on its line, expected a new line")
                end = _next_line(text, end)
        line += text.count("\n", at, end)
        at = end


def _decode(text: str, at: int, line: int) -> tuple[Source | Broken, int]:
    decoder = _Decoder()
    try:
        value, end = decoder.raw_decode(text, at)
    except json.JSONDecodeError as error:
        where = line + text.count("\n", at, error.pos)
        if error.pos >= len(text.rstrip()):
            return Broken(where, "the text ends inside a result: cut off, or still being written"), at
        return Broken(where, f"not JSON: {_plain(error)}"), at
    except ValueError:  # json.loads gives up on integers of more than 4300 digits
        return Broken(line, "not JSON: a number with thousands of digits"), at
    except RecursionError:
        return Broken(line, "not a result: lists or objects nested deeper than any result has"), at
    if decoder.twice:
        name = decoder.twice[0]
        return Broken(
            _line_of_second(text, at, line, name), f"`{name[:60]}` twice in one object, expected it once"
        ), end
    return Source(text=text, start=at, line=line, value=value), end


def _plain(error: json.JSONDecodeError) -> str:
    return f"{error.msg[:1].lower()}{error.msg[1:]} at column {error.colno}"


def _line_of_second(text: str, at: int, line: int, name: str) -> int:
    """The line of the first key `name` that an object holds for the second time."""
    todo = [at]
    while todo:
        seen = False
        place = todo.pop()
        for key, inner in _members(text, place):
            if key == name:
                if seen:
                    return line + text.count("\n", at, inner)
                seen = True
            if text[inner] in "{[":
                todo.append(inner)
    return line


def _members(text: str, at: int) -> Iterator[tuple[Key, int]]:
    """(key or index, place of the value) of the object or list at `at`, which is known to be JSON."""
    if text[at] not in "{[":
        return
    named = text[at] == "{"
    skip = json.JSONDecoder()
    at = _space(text, at + 1)
    index = 0
    while text[at] not in "}]":
        key: Key = index
        if named:
            key, at = scanstring(text, at + 1, True)
            at = _space(text, _space(text, at) + 1)
        yield key, at
        _, at = skip.raw_decode(text, at)
        at = _space(text, at)
        if text[at] == ",":
            at = _space(text, at + 1)
        index += 1


def _space(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    return found.end() if found is not None else at


def _next_line(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _next_object(text: str, at: int) -> int:
    end = text.find("\n{", at)
    return len(text) if end < 0 else end + 1
