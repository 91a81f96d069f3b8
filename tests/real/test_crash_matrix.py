"""A choice of the crash matrix: each process is struck once, where it hurts. All of it: `python -m sandbox.crashes`."""

from __future__ import annotations

import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox.crashes.matrix import Matrix, all_cells, some_cells
from sandbox.crashes.play import LONGEST_S, NOT_HEARD, Cell
from sandbox.crashes.rig import FAULTS, Fault, Rig
from sandbox.crashes.table import markdown, totals
from sandbox.crashes.verdict import Outcome
from sandbox.stage import BEN, CHANNEL

pytestmark = pytest.mark.real

TAKEOVER_S = 15.0
AWAY_S = 60.0  # six leases
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
        matrix = Matrix(Path(folder).resolve(), told.append, away_s=AWAY_S)
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


def test_a_store_that_is_away_for_a_minute_lets_the_step_finish_and_nothing_begin_and_then_all_goes_on(
    matrix: Matrix, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    player = matrix.player
    fall_silent = player.rig.strike

    def once_it_runs(fault: Fault) -> list[int]:
        """The step is under way when decode was told to stop."""
        until(lambda: player.judge.lives("decode")[-1].told_to_stop is not None)
        return fall_silent(fault)

    monkeypatch.setattr(player.rig, "strike", once_it_runs)
    meanwhile = threading.Thread(target=asks_while_it_is_silent, args=(player.rig,))
    meanwhile.start()
    outcome = matrix.strike(Cell("away", "step_started do-2"))
    meanwhile.join(LONGEST_S)
    assert outcome.struck, told[-1]
    assert (outcome.lost, outcome.doubled, outcome.false) == ([], [], []), told[-1]
    assert outcome.struck_at is not None
    assert outcome.takeover_s is not None
    assert outcome.takeover_s > AWAY_S  # nothing can be recorded before
    began = player.judge.lives("decode")[-1].started
    assert began < outcome.struck_at + AWAY_S  # what was begun was finished on the host, without the store
    assert any(words in text for text in player.eyes.ephemerals(BEN) for words in NOT_HEARD)


def asks_while_it_is_silent(rig: Rig) -> None:
    """A person who types while the store answers nobody."""
    until(lambda: bool(rig.stopped))
    rig.slack.people.command(BEN, CHANNEL, "/knob status")


def until(holds: Callable[[], bool]) -> None:
    """Wait for it, bounded; whoever looks then sees whether it came."""
    deadline = time.monotonic() + LONGEST_S
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.005)


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
