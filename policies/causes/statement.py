"""The language of `needs`, `refuted_by`, `if_guilty` and `citing`: the tree of a statement, and its text.

    queue_reqs > 0 and (ttft_s not falling or "rate(sglang:num_requests_total[1m])" == 0) and state != idle

A metric is a name of the fleet file's `metrics`, or a query: PromQL, in quotes or as it stands. `policies.causes.
parsing` reads the text, `policies.causes.truth` says whether it holds. Both ways lose nothing: reading what is
written here gives the same tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from policies.causes.scanning import Malformed, metric_end, name_form, word_at
from policies.metrics.measured import Comparison

StateWord = Literal["idle", "busy", "hung", "saturated"]
Way = Literal["falling", "rising"]
state_words: tuple[StateWord, ...] = get_args(StateWord)
comparisons: tuple[Comparison, ...] = get_args(Comparison)


@dataclass(frozen=True, slots=True)
class Metric:
    """What is read. free: `text` is a query; otherwise a name of the fleet file."""

    text: str
    free: bool = False

    def __str__(self) -> str:
        if not self.free or _stands_alone(self.text):
            return self.text
        inner = self.text.replace("\\", "\\\\")
        if '"' in inner and "'" not in inner:
            return f"'{inner}'"
        return '"' + inner.replace('"', '\\"') + '"'


@dataclass(frozen=True, slots=True)
class Compared:
    """`METRIC op NUMBER`."""

    metric: Metric
    op: Comparison
    number: float

    def __str__(self) -> str:
        return f"{self.metric} {self.op} {number_text(self.number)}"


@dataclass(frozen=True, slots=True)
class Trend:
    """`METRIC falling`, `METRIC not rising`."""

    metric: Metric
    way: Way
    negated: bool = False

    def __str__(self) -> str:
        return f"{self.metric} {'not ' if self.negated else ''}{self.way}"


@dataclass(frozen=True, slots=True)
class InState:
    """`state == WORD`, `state != WORD`."""

    word: StateWord
    negated: bool = False

    def __str__(self) -> str:
        return f"state {'!=' if self.negated else '=='} {self.word}"


@dataclass(frozen=True, slots=True)
class Not:
    """`not X`."""

    part: Statement

    def __str__(self) -> str:
        return f"not {_bracketed(self.part, Every, Either)}"


@dataclass(frozen=True, slots=True)
class Every:
    """`X and Y`, two parts or more."""

    parts: tuple[Statement, ...]

    def __str__(self) -> str:
        return " and ".join(_bracketed(part, Every, Either) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Either:
    """`X or Y`, two parts or more."""

    parts: tuple[Statement, ...]

    def __str__(self) -> str:
        return " or ".join(_bracketed(part, Either) for part in self.parts)


Atom = Compared | Trend | InState
Statement = Atom | Not | Every | Either


def atoms_of(statement: Statement) -> Iterator[Atom]:
    """Every comparison, trend and state of a statement, in the order in which they stand."""
    match statement:
        case Compared() | Trend() | InState():
            yield statement
        case Not(part=part):
            yield from atoms_of(part)
        case Every(parts=parts) | Either(parts=parts):
            for part in parts:
                yield from atoms_of(part)


def metrics_of(statement: Statement) -> tuple[Metric, ...]:
    """Every metric of a statement, each once."""
    return tuple(dict.fromkeys(atom.metric for atom in atoms_of(statement) if not isinstance(atom, InState)))


def speaks_of_state(statement: Statement) -> bool:
    """Whether the state of an engine must be known."""
    return any(isinstance(atom, InState) for atom in atoms_of(statement))


def number_text(number: float) -> str:
    """A number as it is written: without a fraction where it has none."""
    whole = number.is_integer() and abs(number) < 1e15
    return str(int(number)) if whole else repr(number)


def _bracketed(part: Statement, *inside: type[Every] | type[Either]) -> str:
    return f"({part})" if isinstance(part, inside) else str(part)


def _stands_alone(query: str) -> bool:
    """Whether a query can be written without quotes and is read as the same one."""
    if not query or query != query.strip() or not query.isprintable() or query[0] in "\"'`(":
        return False
    if name_form.fullmatch(query) or word_at(query, 0) == "state":
        return False
    end = metric_end(query, 0)
    return not isinstance(end, Malformed) and end == len(query)
