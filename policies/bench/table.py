"""A text of comma-separated tables under each other, as a document: metric -> column -> cell, each with its line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from policies.bench.fields import plain
from policies.bench.run import Problem
from policies.bench.source import Key

FIRST = "Metric"
GROUPED = re.compile(r"[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?")
PLAIN = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?|nan|inf", re.IGNORECASE)
CELL_MOST = 80
MOST_ROWS = 1000


@dataclass(slots=True)
class Table:
    """Rows of all tables whose first column is `Metric`."""

    rows: dict[str, JsonValue] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    others: int = 0  # rows of tables with other columns
    open_end: bool = False

    @property
    def value(self) -> JsonValue:
        """Metric -> column -> number, or the text where it is none."""
        return self.rows

    def line_of(self, path: Sequence[Key]) -> int:
        """The line of the row that `path` starts with."""
        return self.lines.get(str(path[0]), 1) if path else 1


def table(text: str, file: str) -> Table | None:
    """The tables of a text that starts with one; None when it does not."""
    if not re.match(rf"\s*\"?{FIRST}\"?,", text):
        return None
    found = Table(open_end=not text.endswith("\n"))
    columns: list[str] | None = None
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        for row in reader:
            if not any(cell.strip() for cell in row):
                columns = None
            elif columns is None:
                columns = [cell.strip() for cell in row]
            elif columns[0] != FIRST:
                found.others += 1
            elif len(found.lines) + len(found.problems) > MOST_ROWS:
                message = f"more than {MOST_ROWS} rows, expected the results of one benchmark"
                found.problems.append(Problem(file=file, line=reader.line_num, message=message))
                break
            else:
                _add(found, file, reader.line_num, columns, row)
    except csv.Error as error:
        found.problems.append(Problem(file=file, line=reader.line_num, message=f"not comma-separated values: {error}"))
    return found


def _add(found: Table, file: str, line: int, columns: list[str], row: list[str]) -> None:
    name = row[0].strip()
    shown = plain(name, CELL_MOST)
    if len(row) != len(columns):
        message = f"`{shown}` has {len(row)} cells, expected {len(columns)} as in the first line of its table"
        found.problems.append(Problem(file=file, line=line, message=message))
    elif name in found.rows:
        found.problems.append(Problem(file=file, line=line, message=f"`{shown}` twice, expected it once"))
    else:
        found.rows[name] = {key: _cell(cell.strip()) for key, cell in zip(columns[1:], row[1:], strict=True)}
        found.lines[name] = line


def _cell(cell: str) -> JsonValue:
    if not cell or cell == "N/A":
        return None
    if GROUPED.fullmatch(cell):
        return float(cell.replace(",", ""))
    return float(cell) if PLAIN.fullmatch(cell) else cell
