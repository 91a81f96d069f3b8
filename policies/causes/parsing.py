"""Text -> statement, or the place of the first thing that cannot be read, with what to write instead."""

from __future__ import annotations

import re
from math import isfinite
from typing import NoReturn

from policies.causes.query import HINT, problem_of, shown
from policies.causes.scanning import (
    WORDS,
    Malformed,
    bracket_end,
    metric_end,
    name_form,
    skip_blanks,
    string_end,
    word_at,
)
from policies.causes.statement import (
    Compared,
    Either,
    Every,
    InState,
    Metric,
    Not,
    Statement,
    Trend,
    comparisons,
    state_words,
)
from policies.fleet_checks.problems import suggestion

LONGEST = 2000
DEEPEST = 24
number_form = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
op_form = re.compile(r"[<>=!~]+")


def read_statement(text: str) -> Statement | Malformed:
    """The statement that a text is."""
    if len(text) > LONGEST:
        return Malformed(LONGEST, f"found {len(text)} characters, expected at most {LONGEST}", "shorten it")
    try:
        return _Reader(text).whole()
    except _StopError as stop:
        return stop.malformed


class _StopError(Exception):
    """Ends the reading inside this file."""

    def __init__(self, malformed: Malformed) -> None:
        super().__init__(malformed.message)
        self.malformed = malformed


class _Reader:
    """A recursive descent, `or` below `and` below `not`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = skip_blanks(text, 0)
        self.depth = 0

    def whole(self) -> Statement:
        if self.at == len(self.text):
            self.stop("found nothing, expected a comparison", "write e.g. queue_reqs > 0")
        found = self.either()
        if self.at < len(self.text):
            stray = self.text[self.at] == ")"
            hint = "remove it, or open one" if stray else self.meant(("and", "or"), "join the parts by and, or")
            self.stop(f"found {self.next()}, expected and, or or the end", hint)
        return found

    def either(self) -> Statement:
        self.depth += 1
        if self.depth > DEEPEST:
            self.stop(f"found more than {DEEPEST} levels of brackets and not, expected fewer", "split the statement")
        parts = [self.every()]
        while self.took("or"):
            parts.append(self.every())
        self.depth -= 1
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def every(self) -> Statement:
        parts = [self.one()]
        while self.took("and"):
            parts.append(self.one())
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def one(self) -> Statement:
        if self.took("not"):
            self.depth += 1
            if self.depth > DEEPEST:
                self.stop(f"found more than {DEEPEST} levels of brackets and not, expected fewer", "remove some")
            found: Statement = Not(self.one())
            self.depth -= 1
            return found
        if self.is_group():
            self.move(self.at + 1)
            found = self.either()
            if self.text[self.at : self.at + 1] != ")":
                self.stop(
                    f"found {self.next()}, expected and, or or ')'", self.meant(("and", "or"), "join the parts by and")
                )
            self.move(self.at + 1)
            return found
        return self.atom()

    def is_group(self) -> bool:
        """A bracket is ours when a statement may end behind it; otherwise it is part of a query."""
        if self.text[self.at : self.at + 1] != "(":
            return False
        end = self.given(bracket_end(self.text, self.at))
        behind = skip_blanks(self.text, end)
        return behind == len(self.text) or self.text[behind] == ")" or word_at(self.text, behind) in {"and", "or"}

    def atom(self) -> Statement:
        start = self.at
        end = self.given(metric_end(self.text, start))
        written = self.text[start:end].rstrip()
        if not written:
            word = word_at(self.text, start)
            said = f"{shown(word)}, a word of this language" if word in WORDS else self.next()
            self.stop(f"found {said}, expected a metric", HINT)
        self.move(end)
        if written == "state":
            return self.in_state()
        metric = self.metric(written, start)
        if (trend := self.trend(metric)) is not None:
            return trend
        op = op_form.match(self.text, self.at)
        if op is None:
            found = self.next()
            self.stop(f"found {found} behind {shown(written)}, expected a comparison", f"write e.g. {written[:40]} > 0")
        sign = next((one for one in comparisons if one == op[0]), None)
        if sign is None:
            hint = "write ==" if op[0] == "=" else f"write one of {' '.join(comparisons)}"
            self.stop(f"found {shown(op[0])}, expected a comparison", hint)
        self.move(op.end())
        return Compared(metric, sign, self.number())

    def metric(self, written: str, at: int) -> Metric:
        if name_form.fullmatch(written):
            return Metric(written)
        quoted = written[0] in "\"'`" and self.given(string_end(written, 0)) == len(written)
        query = _unquoted(written) if quoted else written
        if (problem := problem_of(query, at)) is not None:
            raise _StopError(problem)
        return Metric(query, free=True)

    def trend(self, metric: Metric) -> Trend | None:
        negated = self.took("not")
        for way in ("falling", "rising"):
            if self.took(way):
                return Trend(metric, "falling" if way == "falling" else "rising", negated)
        if negated:
            self.stop(f"found {self.next()} behind not, expected falling or rising", "write e.g. ttft_s not falling")
        return None

    def in_state(self) -> InState:
        op = op_form.match(self.text, self.at)
        if op is None or op[0] not in {"==", "!="}:
            found = shown(op[0]) if op is not None else self.next()
            self.stop(f"found {found} behind state, expected == or !=", "write e.g. state != idle")
        self.move(op.end())
        word = next((one for one in state_words if one == word_at(self.text, self.at)), None)
        if word is None:
            hint = self.meant(state_words, f"write one of {', '.join(state_words)}")
            self.stop(f"found {self.next()}, expected a state: {', '.join(state_words)}", hint)
        self.move(self.at + len(word))
        return InState(word, negated=op[0] == "!=")

    def number(self) -> float:
        found = number_form.match(self.text, self.at)
        behind = found.end() if found is not None else self.at
        if found is None or word_at(self.text, behind) or not isfinite(float(found[0])):
            self.stop(
                f"found {self.next()}, expected a number without a unit",
                "write e.g. 600; compare two metrics inside a query",
            )
        self.move(behind)
        return float(found[0])

    def took(self, word: str) -> bool:
        if word_at(self.text, self.at) != word:
            return False
        self.move(self.at + len(word))
        return True

    def move(self, at: int) -> None:
        self.at = skip_blanks(self.text, at)

    def next(self) -> str:
        """What stands here, for a message."""
        rest = self.text[self.at :]
        return shown(rest.split(maxsplit=1)[0]) if rest else "the end"

    def meant(self, words: tuple[str, ...], otherwise: str) -> str:
        word = word_at(self.text, self.at)
        hint = suggestion(word, words) if word else ""
        return hint if hint.startswith("did you mean") else otherwise

    def given(self, found: int | Malformed) -> int:
        if isinstance(found, Malformed):
            raise _StopError(found)
        return found

    def stop(self, message: str, hint: str) -> NoReturn:
        raise _StopError(Malformed(self.at, message, hint))


def _unquoted(written: str) -> str:
    """What stands inside the quotes; a backslash before a character means that character, but not inside `...`."""
    inner = written[1:-1]
    return (inner if written[0] == "`" else re.sub(r"\\(.)", r"\1", inner, flags=re.DOTALL)).strip()
