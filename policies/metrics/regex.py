"""Label patterns: the part of RE2 that queries use, matched in time linear in text and pattern.

Python's own engine backtracks, and a pattern may come from a person in chat: `(a+)+b` must not keep a worker busy.
Patterns match a value as a whole, as in Prometheus. What is not read here (flags, classes of Unicode, anchors inside,
nested repeats) is refused, so that nothing is matched in another way than Prometheus would.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

MOST_STATES = 1000
DEEPEST = 20
MOST_REPEATS = 1000  # Source: RE2's own limit
META = set(".^$*+?()[]{}|\\")
Ranges = tuple[tuple[str, str], ...]
DIGIT: Ranges = (("0", "9"),)
WORD: Ranges = (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))
SPACE: Ranges = (("\t", "\n"), ("\f", "\r"), (" ", " "))
CLASSES = {"d": DIGIT, "w": WORD, "s": SPACE}
CONTROLS = {"n": "\n", "t": "\t", "r": "\r"}


class NotSupported(ValueError):
    """The pattern holds something that only Prometheus can match."""


@dataclass(frozen=True, slots=True)
class One:
    """One character: within the ranges, or outside of them."""

    ranges: Ranges
    outside: bool = False

    def takes(self, char: str) -> bool:
        """Whether this character fits."""
        return any(low <= char <= high for low, high in self.ranges) is not self.outside


@dataclass(frozen=True, slots=True)
class Row:
    """One after another."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """One of several."""

    branches: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """So many times; most None: without end."""

    part: Part
    least: int
    most: int | None


Part = One | Row | Either | Repeat
ANY = One((("\n", "\n"),), outside=True)


@dataclass(slots=True)
class Pattern:
    """A compiled pattern. Raises: NotSupported when it is made from what is not read here."""

    text: str
    _chars: list[One | None] = field(default_factory=list)  # None: a fork
    _next: list[tuple[int, ...]] = field(default_factory=list)
    _start: int = 0
    _known: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Compile."""
        self._add(None, ())  # state 0: matched
        self._start = self._build(_Reader(self.text).whole(), 0)

    def matches(self, value: str) -> bool:
        """Whether the whole value fits."""
        if value not in self._known:
            if len(self._known) > MOST_STATES:
                self._known.clear()
            self._known[value] = self._run(value)
        return self._known[value]

    def _run(self, value: str) -> bool:
        now = self._closure([self._start])
        for char in value:
            if not now:
                return False
            steps = [self._next[s][0] for s in now if (one := self._chars[s]) is not None and one.takes(char)]
            now = self._closure(steps)
        return 0 in now

    def _closure(self, states: list[int]) -> set[int]:
        seen: set[int] = set()
        todo = list(states)
        while todo:
            state = todo.pop()
            if state not in seen:
                seen.add(state)
                if self._chars[state] is None:
                    todo += self._next[state]
        return seen

    def _add(self, one: One | None, following: tuple[int, ...]) -> int:
        if len(self._chars) >= MOST_STATES:
            raise NotSupported("so long a pattern")
        self._chars.append(one)
        self._next.append(following)
        return len(self._chars) - 1

    def _build(self, part: Part, after: int) -> int:
        """The state in which this part begins when what follows it begins in `after`."""
        match part:
            case One():
                return self._add(part, (after,))
            case Row(parts):
                for inner in reversed(parts):
                    after = self._build(inner, after)
                return after
            case Either(branches):
                return self._add(None, tuple(self._build(branch, after) for branch in branches))
            case Repeat(inner, least, most):
                if most is None:
                    loop = self._add(None, (after,))
                    self._next[loop] = (self._build(inner, loop), after)
                    after = loop
                else:
                    end = after
                    for _ in range(most - least):
                        after = self._add(None, (self._build(inner, after), end))
                for _ in range(least):
                    after = self._build(inner, after)
                return after


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def whole(self) -> Part:
        part = self._either(0)
        if self._at < len(self._text):
            raise NotSupported(f"`{self._text[self._at :][:20]}` in a pattern")
        return part

    def _peek(self, ahead: int = 0) -> str:
        return self._text[self._at + ahead : self._at + ahead + 1]

    def _take(self) -> str:
        char = self._peek()
        if not char:
            raise NotSupported("a pattern that ends early")
        self._at += 1
        return char

    def _either(self, depth: int) -> Part:
        if depth > DEEPEST:
            raise NotSupported("so deep a pattern")
        branches = [self._row(depth)]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._row(depth))
        return branches[0] if len(branches) == 1 else Either(tuple(branches))

    def _row(self, depth: int) -> Part:
        parts: list[Part] = []
        if depth == 0 and self._peek() == "^":  # a value is matched as a whole anyway
            self._at += 1
        while (char := self._peek()) and char not in "|)":
            if depth == 0 and char == "$" and self._peek(1) in ("", "|"):
                self._at += 1
                break
            parts.append(self._repeated(self._atom(depth)))
        return Row(tuple(parts))

    def _repeated(self, part: Part) -> Part:
        char = self._peek()
        if not char or char not in "*+?{":
            return part
        self._at += 1
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(char) or self._counts()
        if self._peek() == "?":  # lazy or not, the same values match as a whole
            self._at += 1
        if self._peek() and self._peek() in "*+?{":
            raise NotSupported("a repeat of a repeat in a pattern")
        return Repeat(part, least, most)

    def _counts(self) -> tuple[int, int | None]:
        end = self._text.find("}", self._at)
        least, comma, most = self._text[self._at : max(end, self._at)].partition(",")
        numbers = [least] if not comma else [least, most] if most else [least]
        if not all(n.isascii() and n.isdigit() and len(n) < 5 and int(n) <= MOST_REPEATS for n in numbers):
            raise NotSupported("`{` in a pattern")
        self._at = end + 1
        return int(least), (int(least) if not comma else int(most) if most else None)

    def _atom(self, depth: int) -> Part:
        char = self._take()
        match char:
            case ".":
                return ANY
            case "(":
                if self._peek() == "?":
                    self._at += 1
                    if self._take() != ":":
                        raise NotSupported("`(?` in a pattern")
                inner = self._either(depth + 1)
                if self._take() != ")":
                    raise NotSupported("an open group in a pattern")
                return inner
            case "[":
                return self._class()
            case "\\":
                return self._escaped()
        if char in META:
            raise NotSupported(f"`{char}` in a pattern")
        return One(((char, char),))

    def _escaped(self) -> One:
        char = self._take()
        if char.lower() in CLASSES:
            return One(CLASSES[char.lower()], outside=char.isupper())
        if char in CONTROLS:
            return One(((CONTROLS[char], CONTROLS[char]),))
        if not char.isascii() or char.isalnum():
            raise NotSupported(f"`\\{char}` in a pattern")
        return One(((char, char),))

    def _class(self) -> One:
        outside = self._peek() == "^"
        self._at += outside
        return One(tuple(self._members()), outside)

    def _members(self) -> Iterator[tuple[str, str]]:
        first = True  # a bracket that closes at once is refused below
        while (char := self._take()) != "]" or first:
            first = False
            if char == "\\":
                one = self._escaped()
                if one.outside:
                    raise NotSupported("such a class in a pattern")
                if self._peek() == "-" and self._peek(1) != "]":
                    raise NotSupported("a range of escapes in a pattern")
                yield from one.ranges
                continue
            if char in "[]" or (char in "&-~" and self._peek() == char):
                raise NotSupported("such a class in a pattern")
            high = char
            if self._peek() == "-" and self._peek(1) not in ("]", ""):
                self._at += 1
                high = self._take()
                if high in "[]\\" or high < char:
                    raise NotSupported("such a range in a pattern")
            yield char, high
