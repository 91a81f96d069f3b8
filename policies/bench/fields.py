"""Typed values out of a document. What is not a finite number where one is needed is a problem with its line."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from pydantic import JsonValue

from policies.bench.run import Problem, Quantity, Unlimited
from policies.bench.source import Key, Located

SHOWN = 40
TEXT_MOST = 200
LARGEST = 1e15  # nothing that is measured here comes near; products of two stay finite, and counts exact


@dataclass(frozen=True, slots=True)
class Wanted:
    """A metric of a format: where it stands, its name and unit here, and the factor from the file's unit to ours."""

    path: tuple[Key, ...]
    name: str
    unit: str
    scale: float = 1.0


@dataclass(slots=True)
class Fields:
    """Reads below `base` of a document; collects what is wrong in `problems` and what is odd in `warnings`."""

    source: Located
    file: str
    base: tuple[Key, ...] = ()
    number_texts: bool = False  # this format writes some numbers as strings
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def below(self, *path: Key) -> Fields:
        """The same document further in, with problems and warnings of its own."""
        return Fields(self.source, self.file, (*self.base, *path), self.number_texts)

    @property
    def line(self) -> int:
        """Where the base stands."""
        return self.source.line_of(self.base)

    def raw(self, *path: Key) -> JsonValue:
        """The value there, None when there is none."""
        value = self.source.value
        for key in (*self.base, *path):
            if isinstance(value, dict) and isinstance(key, str):
                value = value.get(key)
            elif isinstance(value, list) and isinstance(key, int) and key < len(value):
                value = value[key]
            else:
                return None
        return value

    def members(self, *path: Key) -> tuple[str, ...]:
        """The names there; none when it is no object."""
        value = self.raw(*path)
        return tuple(value) if isinstance(value, dict) else ()

    def size(self, *path: Key) -> int:
        """How many entries the list there has; 0 when it is none."""
        value = self.raw(*path)
        return len(value) if isinstance(value, list) else 0

    def within(self, count: int, most: int, *path: Key) -> bool:
        """Whether there are at most so many; a problem when not."""
        if count > most:
            self.problem(path, f"{count} runs, expected at most {most} of one benchmark")
        return count <= most

    def text(self, *path: Key) -> str | None:
        """A short text; anything else is as if it were not there."""
        value = self.raw(*path)
        return plain(value, TEXT_MOST) if isinstance(value, str) and value else None

    def number(self, *path: Key, needed: bool = False) -> float | None:
        """A finite number that is not negative, or None with a problem, or None where it is not there and not needed.

        NaN for something that is not needed is what tools write for "nothing to average": left out with a warning.
        """
        value = self.raw(*path)
        if value is None:
            if needed:
                self.problem(path, f"`{_name(path)}` is {self._absent(path)}, expected a number")
            return None
        if isinstance(value, str) and self.number_texts:
            value = _from_text(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.problem(path, f"`{_name(path)}` is {shown(value)}, expected a number")
            return None
        if isinstance(value, float) and math.isnan(value) and not needed:
            line = self.source.line_of((*self.base, *path))
            self.warnings.append(f"line {line}: `{_name(path)}` is not a number (NaN): left out")
            return None
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number) and number > LARGEST:
            self.problem(path, f"`{_name(path)}` is {number:g}, expected a number that can be measured")
            return None
        if not math.isfinite(number):
            self.problem(path, f"`{_name(path)}` is {shown(value)}, expected a finite number")
            return None
        if number < 0:
            self.problem(path, f"`{_name(path)}` is {number:g}, expected 0 or more")
            return None
        return number

    def count(self, *path: Key, needed: bool = False) -> int | None:
        """As `number`, and whole."""
        number = self.number(*path, needed=needed)
        if number is None:
            return None
        if number != int(number):
            self.problem(path, f"`{_name(path)}` is {number:g}, expected a whole number")
            return None
        return int(number)

    def positive(self, *path: Key, needed: bool = False) -> int | None:
        """As `count`, at least 1."""
        number = self.count(*path, needed=needed)
        if number == 0:
            self.problem(path, f"`{_name(path)}` is 0, expected at least 1")
            return None
        return number

    def rate(self, *path: Key) -> float | Unlimited | None:
        """A request rate: requests per second, `inf` for no limit (bare Infinity or a text), None when not told."""
        value = self.raw(*path)
        if value is None:
            return None
        if isinstance(value, str) and value.strip().lower() in {"inf", "infinity"}:
            return "inf"
        if isinstance(value, float) and value == math.inf:
            return "inf"
        if isinstance(value, str) and value.strip().lower() == "trace":
            self.warnings.append("requests came at the times of a trace: no rate")
            return None
        number = self.number(*path, needed=True)
        if number == 0:
            self.problem(path, f"`{_name(path)}` is 0, expected requests per second or inf")
            return None
        return number

    def quantities(self, wanted: Iterable[Wanted], needed: frozenset[str] = frozenset()) -> dict[str, Quantity]:
        """The metrics that are there, in our units."""
        found: dict[str, Quantity] = {}
        for one in wanted:
            value = self.number(*one.path, needed=one.name in needed)
            if value is not None:
                found[one.name] = Quantity(value=value * one.scale, unit=one.unit)
        return found

    def problem(self, path: tuple[Key, ...], message: str) -> None:
        """Note what is wrong with the value at `path`."""
        line = self.source.line_of((*self.base, *path))
        self.problems.append(Problem(file=self.file, line=line, message=message))

    def _absent(self, path: tuple[Key, ...]) -> str:
        return "null" if path and isinstance(path[-1], str) and path[-1] in self.members(*path[:-1]) else "missing"


def plain(text: str, most: int) -> str:
    """A text of a file on one line and not longer than `most`, safe to store and print."""
    line = "".join(c if c.isprintable() else " " for c in text[: most + 1])
    return line if len(line) <= most else line[: most - 1] + "…"


def shown(value: JsonValue) -> str:
    """A wrong value for a message."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return f'"{plain(value, SHOWN)}"'
        case list():
            return f"a list of {len(value)}"
        case dict():
            return f"an object of {len(value)}"
        case int() if abs(value) >= LARGEST:
            return "a number too large to be measured"
        case _:
            return str(value)


def _from_text(text: str) -> JsonValue:
    try:
        return float(text) if len(text) <= SHOWN and not text.isalpha() else text
    except ValueError:
        return text


def _name(path: tuple[Key, ...]) -> str:
    return plain(".".join(str(key) for key in path), TEXT_MOST) or "result"
