"""What one scrape of an engine or a router says of its work, by the rules of its metrics.

- Ranks repeat the same requests: of the ranks of one dp_rank one counts, then dp_ranks are added. Ranks that disagree
  give the greatest, and both values are told.
- With priority scheduling the series with priority="" is the total and the others are its parts.
- A family that is missing is no data, and a rank that says NaN does not know: None, never 0.
- A reading is the answer to its `query`, so that whoever sees it can ask for it again.
Source: FACTS-serving 3.1 to 3.3, SGLang 0.5.23, vLLM 0.26, sgl-model-gateway and the experimental sgl-router.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isfinite
from typing import Literal

from policies.finding import Finding
from policies.metrics.evaluate import evaluate
from policies.metrics.history import History
from policies.metrics.names import (
    ACTIVE,
    ANSWERED,
    HTTP,
    IN_FLIGHT,
    NO_WORK,
    PROGRESS,
    PULSE,
    QUEUES,
    QUEUES_SOMETIMES,
    RANKS,
    RECEIVED,
    RUNNING,
    STARTED,
    THROUGHPUT,
    USAGE,
    WAITING,
)
from policies.metrics.promql import Query, compile_query
from policies.metrics.samples import Scrape

Values = dict[str, str | int | float | None]
Role = Literal["unified", "prefill", "decode", "dynamic"]
# a start is told with a precision of its clock's ticks; a restart takes longer than this
SAME_START_S = 1.0


@dataclass(frozen=True, slots=True)
class Number:
    """One reading. value None: not known, and `problem` says why; beside a value it says what is doubtful about it.

    least: what it would be if those ranks were right that say less; equal to `value` where all agree.
    """

    name: str
    query: str
    unit: str
    value: float | None
    least: float | None = None
    problem: Finding | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """What moved between two scrapes. A process that began anew in between has nothing to compare."""

    restarted: bool | None  # None: neither its start is told nor did a counter fall
    moved: dict[str, float]  # counter -> by how much
    still: tuple[str, ...]


class Engine:
    """The readings of one scrape."""

    def __init__(self, scrape: Scrape) -> None:
        self.scrape = scrape
        self._history = History([scrape])

    @cached_property
    def role(self) -> Role | None:
        """What the engine says that it is; None when it does not say so."""
        words = {s.labels.get("engine_type", "") for name in RUNNING for s in self.scrape.named(name)}
        found = words.pop() if len(words) == 1 else ""
        return next((role for role in ("unified", "prefill", "decode", "dynamic") if role == found), None)

    @cached_property
    def running(self) -> Number:
        """Requests in the running batch."""
        return self._ranked("running", "requests", RUNNING)

    @cached_property
    def queued(self) -> Number:
        """Requests that wait for the batch."""
        return self._ranked("queued", "requests", WAITING)

    def pd_queues(self, role: Role | None) -> tuple[Number, ...]:
        """The queues between prefill and decode: those that the role must have, and others that are exported.

        role None: of an engine that does not say what it is, those that are exported.
        """
        roles: tuple[Literal["prefill", "decode"], ...] = ("prefill", "decode")
        needed = [names for kind in roles if role in {kind, "dynamic"} for names in QUEUES[kind]]
        others = [names for kind in roles for names in (*QUEUES[kind], *QUEUES_SOMETIMES[kind]) if names not in needed]
        found = [*needed, *(names for names in others if any(self.scrape.named(name) for name in names))]
        return tuple(self._ranked(names[0].partition("num_")[2], "requests", names) for names in found)

    @cached_property
    def http_active(self) -> Number:
        """HTTP requests that are being answered, without those that only look (the scrape itself is one)."""
        query = f'sum({HTTP}{{endpoint!~"{NO_WORK}"}})'
        found = self._number("http_active", "requests", query)
        if (
            found.value is None
            and self.scrape.named(HTTP)
            and found.problem
            and found.problem.code == "metrics.missing"
        ):
            return Number(
                found.name, query, found.unit, 0.0, 0.0
            )  # the family is there, and no other endpoint was asked
        return found

    @cached_property
    def router_in_flight(self) -> Number:
        """Requests that a router has not finished. It is 0 only when everything that counts them says so.

        The ages are counted every 20 s; a PD router counts a request at both of its workers; answered means that the
        answer began. So no single one is enough, and the greatest is told.
        """
        found = [self._number("router_in_flight", "requests", query) for query in IN_FLIGHT if self._has(query)]
        found += self._unanswered()
        known = [number for number in found if number.value is not None]
        if len(known) < len(found):
            return next(number for number in found if number.value is None)
        return max(known, key=_value, default=self._number("router_in_flight", "requests", IN_FLIGHT[0]))

    def _unanswered(self) -> list[Number]:
        """What the experimental router received and did not begin to answer; nothing where it does not count that."""
        if not self.scrape.named(RECEIVED):
            return []
        quiet = f'{{route!~"{NO_WORK}"}}'
        received = self._number("router_in_flight", "requests", f"sum({RECEIVED}{quiet})", none_is=0.0)
        answered = self._number("router_in_flight", "requests", f"sum({ANSWERED}{quiet})", none_is=0.0)
        query = f"{received.query} - {answered.query}"
        if received.value is None or answered.value is None:
            return [Number(received.name, query, received.unit, None, problem=received.problem or answered.problem)]
        return [Number(received.name, query, received.unit, received.value - answered.value)]

    @cached_property
    def worker_requests(self) -> Number:
        """Requests of all workers as the router counts them: one of a PD pair counts twice."""
        return self._number("worker_requests", "requests", f"sum({ACTIVE})")

    @cached_property
    def usage(self) -> Number:
        """How full the KV cache of the fullest rank is. Units: share of 1."""
        name = self._exported(USAGE)
        return self._number("usage", "1", f"max({name})")

    @cached_property
    def throughput(self) -> Number:
        """Generated tokens a second when that was last logged, not now: an idle engine keeps the value."""
        found = self._ranked("throughput", "tokens/s", (THROUGHPUT,))
        if found.value is None:
            return found
        problem = Finding(code="metrics.last-value", effect="note", values={"query": found.query})
        return Number(found.name, found.query, found.unit, found.value, found.least, problem)

    @cached_property
    def started(self) -> float | None:
        """When the process began, as it says itself. Units: epoch seconds."""
        return max((s.value for s in self.scrape.named(STARTED) if isfinite(s.value)), default=None)

    def counters(self, names: Iterable[str] = PROGRESS) -> dict[str, float]:
        """Counters by name, ranks taken once; those that are missing or no number are not in it."""
        found = ((name, self._ranked(name, "1", (name,))) for name in names if self.scrape.named(name))
        return {name: number.value for name, number in found if number.value is not None}

    def _exported(self, names: tuple[str, ...]) -> str:
        return next((name for name in names if self.scrape.named(name)), names[0])

    def _has(self, query: str) -> bool:
        return any(self.scrape.named(name) for name in _compiled(query).names or ())

    def _ranked(self, word: str, unit: str, names: tuple[str, ...]) -> Number:
        """One quantity that every rank repeats."""
        query = f'sum(max without ({RANKS}) ({self._exported(names)}{{priority=""}}))'
        found = self._number(word, unit, query)
        if found.value is None:
            return found
        least = self._number(word, unit, query.replace("max", "min", 1)).value
        if least is None or least == found.value:
            return found
        values: Values = {"instance": self.scrape.instance, "query": query, "at": self.scrape.at}
        problem = Finding(
            code="metrics.ranks-disagree", effect="warn", values={**values, "least": least, "most": found.value}
        )
        return Number(word, query, unit, found.value, least, problem)

    def _number(self, word: str, unit: str, query: str, *, none_is: float | None = None) -> Number:
        """none_is: what it means that no series fits."""
        compiled = _compiled(query)
        answer = evaluate(compiled, self._history, self.scrape.at)
        values: Values = {"query": query, "source": self.scrape.source}
        if isinstance(answer, Finding):
            return Number(word, query, unit, None, problem=answer)
        if not answer and none_is is None:
            values |= {"start": self.scrape.at, "end": self.scrape.at}
            return Number(
                word, query, unit, None, problem=Finding(code="metrics.missing", effect="warn", values=values)
            )
        samples = (sample for name in compiled.names or () for sample in self.scrape.named(name))
        if not all(isfinite(sample.value) for sample in samples):  # `max` would pass over a rank that does not know
            values["at"] = self.scrape.at
            return Number(
                word, query, unit, None, problem=Finding(code="metrics.no-number", effect="warn", values=values)
            )
        value = answer[0].value.number if answer else none_is
        return Number(word, query, unit, value, value)


def progress(earlier: Scrape, later: Scrape, names: Iterable[str] = PROGRESS) -> Progress:
    """What moved between two scrapes of one instance. A counter that came up in between counted something.

    `scheduler_idle_seconds_total` is no work and is not among them; ask for it with `names=PULSE`.
    """
    names = tuple(names)
    before, after = Engine(earlier), Engine(later)
    old, new = before.counters(names), after.counters(names)
    fell = any(new[name] < old[name] for name in old if name in new)
    restarted: bool | None = True if fell else None
    if before.started is not None and after.started is not None:
        restarted = fell or abs(after.started - before.started) > SAME_START_S
    if restarted:
        return Progress(True, {}, ())
    moved = {name: value - old.get(name, 0.0) for name, value in new.items() if value > old.get(name, 0.0)}
    return Progress(restarted, moved, tuple(name for name in new if name in old and name not in moved))


def pulse(earlier: Scrape, later: Scrape) -> Progress:
    """Whether the scheduler's own loop ran, work or not."""
    return progress(earlier, later, PULSE)


@lru_cache(maxsize=256)
def _compiled(text: str) -> Query:
    query = compile_query(text)
    if isinstance(query, Finding):
        message = f"`{text}` is a query of our own and cannot be compiled: {query.values}"
        raise TypeError(message)
    return query


def _value(number: Number) -> float:
    return number.value if number.value is not None else -1.0
