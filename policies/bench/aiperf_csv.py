"""AIPerf and GenAI-Perf: the CSV export. Two tables in one file, units in the names, columns in any order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from policies.bench.aiperf import PER_SECOND, SPELLED, TO_MS
from policies.bench.fields import Fields, Wanted, plain
from policies.bench.metrics import statistics
from policies.bench.reader import Counts, Reader, made
from policies.bench.run import Load, Run
from policies.bench.source import Located
from policies.bench.table import Table

NAME = "aiperf-csv"
NAMED = re.compile(r"(?P<name>[A-Za-z ]+?)( \((?P<unit>[^)]*)\))?")
LATENCIES = {
    "time to first token": "ttft",
    "inter token latency": "itl",
    "request latency": "e2e_latency",
    "time to second token": "ttst",
}
THROUGHPUTS = {
    "output token throughput": "output_throughput",
    "total token throughput": "total_throughput",
    "request throughput": "request_throughput",
}
VALUE = ("Value", "avg")  # the second table has one column; newer files write avg there


def fits(source: Located) -> bool:
    """Tables with at least two metrics of its own."""
    if not isinstance(source, Table):
        return False
    found = {name for row in source.rows if (name := _split(row)[0]) in LATENCIES or name in THROUGHPUTS}
    return len(found) >= 2


def read(fields: Fields) -> list[Run]:
    """The run. Concurrency and rate are not in such a file."""
    table = fields.source
    if isinstance(table, Table):
        fields.problems += table.problems
        if table.others:
            fields.warnings.append(f"{table.others} rows of other tables are not read")
    rows = {_split(row)[0]: row for row in fields.members()}
    metrics = fields.quantities(_wanted(fields), needed=frozenset({"output_throughput"}))
    if THROUGHPUTS.keys().isdisjoint(rows) or "output token throughput" not in rows:
        fields.problem((), "`Output Token Throughput` is missing, expected it in the second table")
    completed = _count(fields, rows, "request count", needed=True)
    counts = Counts(
        completed=completed,
        failed=_count(fields, rows, "error request count"),
        input_tokens=_tokens(fields, rows, "input sequence length", completed),
        output_tokens=_tokens(fields, rows, "output sequence length", completed),
        duration_s=_duration_s(fields, rows),
    )
    if isinstance(table, Table) and table.open_end:
        fields.warnings.append("the last line has no end: the file may be cut off")
    fields.warnings.append("concurrency and request rate are not in the file")
    return made(NAME, fields, Load(), metrics, counts)


def _split(row: str) -> tuple[str, str | None]:
    found = NAMED.fullmatch(row)
    return (found["name"].lower(), found["unit"]) if found is not None else (row.lower(), None)


def _wanted(fields: Fields) -> Iterator[Wanted]:
    for row in fields.members():
        name, unit = _split(row)
        if name in LATENCIES:
            if unit not in TO_MS:
                fields.problem((row,), f"`{plain(row, 80)}` has no unit that is known, expected {', '.join(TO_MS)}")
                continue
            yield from statistics(fields.members(row), (row,), LATENCIES[name], SPELLED, TO_MS[unit])
        elif name in THROUGHPUTS:
            if unit not in PER_SECOND:
                fields.problem((row,), f"`{plain(row, 80)}` has no unit that is known, expected one per second")
                continue
            yield Wanted((row, _column(fields, row)), THROUGHPUTS[name], PER_SECOND[unit])


def _column(fields: Fields, row: str) -> str:
    keys = fields.members(row)
    return next((column for column in VALUE if column in keys), VALUE[0])


def _count(fields: Fields, rows: dict[str, str], name: str, *, needed: bool = False) -> int | None:
    row = rows.get(name)
    if row is None:
        if needed:
            fields.problem((), f"`{name}` is missing, expected it in the second table")
        return None
    return fields.count(row, _column(fields, row), needed=needed)


def _tokens(fields: Fields, rows: dict[str, str], name: str, completed: int | None) -> float | None:
    row = rows.get(name)
    mean = fields.number(row, "avg") if row is not None else None
    return None if mean is None or completed is None else mean * completed


def _duration_s(fields: Fields, rows: dict[str, str]) -> float | None:
    row = rows.get("benchmark duration")
    unit = _split(row)[1] if row is not None else None
    if row is None or unit not in TO_MS:
        return None
    value = fields.number(row, _column(fields, row))
    return None if value is None else value * TO_MS[unit] / TO_MS["s"]


READER = Reader(NAME, fits, read)
