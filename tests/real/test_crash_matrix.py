"""A choice of the crash matrix: each process is struck once, where it hurts. All of it: `python -m sandbox.crashes`."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.crashes.matrix import Matrix, all_cells, some_cells
from sandbox.crashes.play import Cell
from sandbox.crashes.rig import FAULTS, Fault
from sandbox.crashes.table import markdown, totals
from sandbox.crashes.verdict import Outcome

pytestmark = pytest.mark.real

TAKEOVER_S = 15.0
CELLS: tuple[tuple[Fault, str], ...] = (
    ("act", "step_started do-2"),
    ("ask", "asked"),
    ("narrator", "gate_passed do-2 health"),
    ("bot", "planned"),
    ("valkey", "step_started do-3"),
    ("stop", "step_started do-0"),
    ("root", "step_done do-2"),
)


@pytest.fixture(scope="module")
def told() -> list[str]:
    """What the matrix says of each cell."""
    return []


@pytest.fixture(scope="module")
def matrix(told: list[str]) -> Iterator[Matrix]:
    """A stage on which changes in both directions were played in peace."""
    with tempfile.TemporaryDirectory(prefix="cb-") as folder:
        matrix = Matrix(Path(folder).resolve(), told.append)
        try:
            matrix.calm()
            yield matrix
        finally:
            left = matrix.close()
        assert left == []


@pytest.mark.parametrize(("fault", "moment"), CELLS)
def test_whatever_dies_nothing_is_lost_done_twice_or_claimed_falsely(
    matrix: Matrix, told: list[str], fault: Fault, moment: str
) -> None:
    outcome = matrix.strike(Cell(fault, moment))
    assert outcome.struck, told[-1]
    assert (outcome.lost, outcome.doubled, outcome.false) == ([], [], []), told[-1]
    if fault == "stop":
        assert outcome.takeover_s is not None  # its lease has to end first, see docs/crash-matrix.md
    if fault == "act":
        assert outcome.takeover_s is not None
        assert outcome.takeover_s < TAKEOVER_S


def test_a_seed_chooses_the_same_cells_and_every_fault_first() -> None:
    cells = all_cells(("asked", "started", "step_started do-0", "succeeded"))
    assert ("stop", "asked") not in {(cell.fault, cell.moment) for cell in cells}
    chosen = some_cells(cells, len(FAULTS), random.Random(3))
    assert [cell.fault for cell in chosen] == list(FAULTS)
    assert chosen == some_cells(cells, len(FAULTS), random.Random(3))
    assert len(some_cells(cells, 12, random.Random(3))) == 12


def test_the_table_shows_what_went_wrong_and_the_worst_takeover() -> None:
    good = Outcome(Cell("act", "started"), "revert", struck=True, takeover_s=1.5)
    bad = Outcome(Cell("stop", "started"), "revert", struck=True, doubled=["decode was started 2 times"])
    none = Outcome(Cell("stop", "succeeded"), "revert", struck=False)
    page = markdown([good, bad, none])
    assert "| started | ok 1.5 s | **doubled** |" in page
    assert "| succeeded |  | - |" in page
    assert "stop at started: decode was started 2 times" in page
    assert totals([good, bad, none]) == {
        "cells": 2,
        "good": 1,
        "lost": 0,
        "doubled": 1,
        "false": 0,
        "takeovers": 1,
        "takeover_median_s": 1.5,
        "takeover_worst_s": 1.5,
        "killed_takeover_median_s": 1.5,
        "killed_takeover_worst_s": 1.5,
    }
